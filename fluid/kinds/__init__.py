# SPDX-License-Identifier: Apache-2.0
"""The kinds of ceilings that a configuration can ask for, one file each."""
