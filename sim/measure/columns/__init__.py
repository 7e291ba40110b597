# SPDX-License-Identifier: Apache-2.0
"""Columns of the tables that a run writes: what each is called, means and is measured in, in one place."""
