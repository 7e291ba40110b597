# SPDX-License-Identifier: Apache-2.0
"""Schedules of collectives: who sends which part of the data to whom, in which order, and how they become programs."""
