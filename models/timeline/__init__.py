# SPDX-License-Identifier: Apache-2.0
"""Dynamic topology: events of a network during a run, and the epochs between them."""
