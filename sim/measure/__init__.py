# SPDX-License-Identifier: Apache-2.0
"""From a run to a point of a curve: warm-up, batches, confidence, saturation."""
