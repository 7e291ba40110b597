# SPDX-License-Identifier: Apache-2.0
"""The figures of metrics.csv: those of ``outputs.plots``, as curves, charts and distributions."""
