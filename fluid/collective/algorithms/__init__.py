# SPDX-License-Identifier: Apache-2.0
"""Algorithms of collectives, one file per family; each builds a program for a network."""
