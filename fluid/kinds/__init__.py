# SPDX-License-Identifier: Apache-2.0
"""The kinds of ceilings in a configuration, one file each."""
