"""Interconnect graphs: :class:`~models.topology.graph.Topology`, what is known of any, and files of them."""
