"""Runs a study into a resumable folder; the only place that knows engines and ceilings."""
