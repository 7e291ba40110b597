"""The figures of metrics.csv: what ``outputs.plots`` asks for, and curves, charts and distributions of it."""
