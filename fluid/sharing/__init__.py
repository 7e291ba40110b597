# SPDX-License-Identifier: Apache-2.0
"""Throughput models: how much every flow gets if capacity is divided by a rule, over the paths of a routing."""
