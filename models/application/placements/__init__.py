# SPDX-License-Identifier: Apache-2.0
"""Which host runs which rank: one file for each way to decide it."""
