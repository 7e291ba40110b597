"""Interconnect graphs: :class:`~flitlab.models.topology.graph.Topology`, what is known of any, and files of them."""
