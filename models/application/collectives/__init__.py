# SPDX-License-Identifier: Apache-2.0
"""Collective operations as rounds of messages, one file for each; ``choose`` says which algorithm is taken when."""
