# SPDX-License-Identifier: Apache-2.0
"""Parallel programs: what ranks compute and send, and which hosts run them."""
