# SPDX-License-Identifier: Apache-2.0
"""Where switches stand, and what cables, money and power that takes."""
