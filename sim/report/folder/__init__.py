# SPDX-License-Identifier: Apache-2.0
"""Reads the folder of a run: tables, ceilings and stored points."""
