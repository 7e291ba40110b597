# SPDX-License-Identifier: Apache-2.0
"""Runs of the switching mode datagram: their counters, and two of them in lock-step."""
