# SPDX-License-Identifier: Apache-2.0
"""Disciplines: what a switch does with what arrives, a file for each."""
