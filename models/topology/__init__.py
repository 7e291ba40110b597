# SPDX-License-Identifier: Apache-2.0
"""Interconnect graphs (:class:`~flitlab.models.topology.graph.Topology`), their properties and their file formats."""
