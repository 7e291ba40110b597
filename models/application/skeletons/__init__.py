# SPDX-License-Identifier: Apache-2.0
"""Programs by name: one file each."""
