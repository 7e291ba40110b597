"""Parallel programs: what ranks compute and send, and where ranks run."""
