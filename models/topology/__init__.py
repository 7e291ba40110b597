"""Interconnect graphs: one file per family, :class:`~models.topology.graph.Topology` for all."""
