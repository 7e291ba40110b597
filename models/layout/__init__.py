# SPDX-License-Identifier: Apache-2.0
"""Physical layout: positions of switches, cables, cost and power."""
