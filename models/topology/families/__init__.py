# SPDX-License-Identifier: Apache-2.0
"""Families of interconnect graphs: one file each."""
