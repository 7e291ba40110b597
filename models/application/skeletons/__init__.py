# SPDX-License-Identifier: Apache-2.0
"""Programs by name: a file for each, or for several of one suite."""
