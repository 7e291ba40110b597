"""Schedules of collectives: who sends which part of the data to whom, in which order, and how they become programs."""
