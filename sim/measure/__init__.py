# SPDX-License-Identifier: Apache-2.0
"""The way from a run to a point of a curve: warm-up, batches, confidence, saturation."""
