"""Traffic: one file per pattern, :class:`~flitlab.models.traffic.traffic.Traffic` for all."""
