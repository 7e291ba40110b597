# SPDX-License-Identifier: Apache-2.0
"""What any algorithm needs for a collective on a network, with certificates, and trees that reach it."""
