# SPDX-License-Identifier: Apache-2.0
"""Scenarios made of a YAML file: ``load`` reads, ``expand`` multiplies, a ``Draft`` of each is checked and built."""
