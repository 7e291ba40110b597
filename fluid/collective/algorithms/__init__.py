# SPDX-License-Identifier: Apache-2.0
"""Algorithms of collectives, by family; each builds a program for a network."""
