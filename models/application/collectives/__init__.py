# SPDX-License-Identifier: Apache-2.0
"""Collective operations as rounds of messages, one file each; ``choose`` selects algorithms."""
