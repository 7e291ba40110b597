# SPDX-License-Identifier: Apache-2.0
"""Runs of the datagram discipline: what they count, and two of them side by side."""
