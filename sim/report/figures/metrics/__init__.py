# SPDX-License-Identifier: Apache-2.0
"""The figures of metrics.csv: what ``outputs.plots`` asks for, and curves, charts and distributions of it."""
