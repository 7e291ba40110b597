"""Metrics of topologies that flows and cuts give."""
