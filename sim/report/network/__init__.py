# SPDX-License-Identifier: Apache-2.0
"""Drawings of networks: of a topology as such, and of where its flows are stuck."""
