# SPDX-License-Identifier: Apache-2.0
"""Transports: how hosts send. One file per congestion control; ``newreno`` is the state machine around them."""
