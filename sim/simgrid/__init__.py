# SPDX-License-Identifier: Apache-2.0
"""Programs in SimGrid, an independent model of the network for comparison."""
