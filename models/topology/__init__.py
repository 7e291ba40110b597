# SPDX-License-Identifier: Apache-2.0
"""Interconnect graphs: :class:`~flitlab.models.topology.graph.Topology`, what is known of any, and files of them."""
