# SPDX-License-Identifier: Apache-2.0
"""Sets of loopless paths: the k shortest, the equal-cost ones, and all within a number of hops."""
