# SPDX-License-Identifier: Apache-2.0
"""``simrun judge``: whether a result that somebody reports is possible at all, and what proves it."""
