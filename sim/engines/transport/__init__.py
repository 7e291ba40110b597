# SPDX-License-Identifier: Apache-2.0
"""Runs of hosts with transports (modes datagram and spray): their counters, and two of them in lock-step."""
