# SPDX-License-Identifier: Apache-2.0
"""Runs of sprayed packets: their counters, and two of them in lock-step."""
