# SPDX-License-Identifier: Apache-2.0
"""Families of interconnect graphs: a file for each, or for several relatives."""
