# SPDX-License-Identifier: Apache-2.0
"""``simrun judge``: whether a reported result is possible, with a proof."""
