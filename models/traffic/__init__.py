"""Traffic: one file per pattern, :class:`~models.traffic.traffic.Traffic` for all."""
