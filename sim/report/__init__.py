# SPDX-License-Identifier: Apache-2.0
"""Figures and pages from a run folder: ``folder`` reads, ``figures`` and ``network`` draw, ``html`` writes."""
