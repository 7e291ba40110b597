"""Graph metrics and physical costs of topologies: one file per metric."""
