# SPDX-License-Identifier: Apache-2.0
"""What is possible: fluid-flow ceilings of a scenario, each with a certificate that needs no solver."""
