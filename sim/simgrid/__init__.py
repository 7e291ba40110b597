# SPDX-License-Identifier: Apache-2.0
"""A program run in SimGrid as well: an independent model of the network to compare times with."""
