# SPDX-License-Identifier: Apache-2.0
"""What happens: engines, measurement, experiments, reports and the command line."""
