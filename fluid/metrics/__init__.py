# SPDX-License-Identifier: Apache-2.0
"""Topology metrics that flows and cuts give."""
