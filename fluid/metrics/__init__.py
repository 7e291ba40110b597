# SPDX-License-Identifier: Apache-2.0
"""Metrics of topologies that flows and cuts give."""
