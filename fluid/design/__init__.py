# SPDX-License-Identifier: Apache-2.0
"""The search for networks that no other of the same price dominates, with proofs of what is left out."""
