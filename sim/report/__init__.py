# SPDX-License-Identifier: Apache-2.0
"""Figures and a page from a run folder: ``frames`` reads, ``plots`` draws, ``figures`` and ``html`` write."""
