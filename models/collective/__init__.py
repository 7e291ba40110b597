# SPDX-License-Identifier: Apache-2.0
"""Schedules of collectives: which rank sends which data to which rank in which order, and their translation to
programs.
"""
