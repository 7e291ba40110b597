"""Which host runs which rank: one file for each way to decide it."""
