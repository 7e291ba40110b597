# SPDX-License-Identifier: Apache-2.0
"""Traffic patterns; :class:`~flitlab.models.traffic.traffic.Traffic` represents all of them."""
