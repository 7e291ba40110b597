# SPDX-License-Identifier: Apache-2.0
"""Placements of ranks on hosts."""
