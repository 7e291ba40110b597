# SPDX-License-Identifier: Apache-2.0
"""Least times of collectives on a network, by any algorithm, with certificates; and trees that reach them."""
