# SPDX-License-Identifier: Apache-2.0
"""Drawings of networks: topologies, and their bottlenecks."""
