# SPDX-License-Identifier: Apache-2.0
"""Switching modes: what a switch does with packets, one file each."""
