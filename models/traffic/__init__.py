# SPDX-License-Identifier: Apache-2.0
"""Traffic: one file per pattern, :class:`~flitlab.models.traffic.traffic.Traffic` for all."""
