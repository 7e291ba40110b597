# SPDX-License-Identifier: Apache-2.0
"""Runs a study into a resumable folder; the only place that knows engines and ceilings."""
