# SPDX-License-Identifier: Apache-2.0
"""The search for networks that no other of the same price beats, with proofs of what is left out."""
