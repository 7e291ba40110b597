# SPDX-License-Identifier: Apache-2.0
"""Transports: how hosts send datagrams. One file a control law; ``newreno`` is the machine around it."""
