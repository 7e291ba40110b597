# SPDX-License-Identifier: Apache-2.0
"""The figures that ``outputs.figures`` may name: a file each, of that name."""
