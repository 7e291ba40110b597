# SPDX-License-Identifier: Apache-2.0
"""Algorithms of collectives, one file for those of a family; each makes a program for a network."""
