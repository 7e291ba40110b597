# SPDX-License-Identifier: Apache-2.0
"""Columns of the tables of a run: name, meaning and unit of each, in one place."""
