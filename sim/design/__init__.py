# SPDX-License-Identifier: Apache-2.0
"""Designs: which fabric to build for a number of hosts, with proofs of what is left out."""
