# SPDX-License-Identifier: Apache-2.0
"""Fluid-flow ceilings of a scenario: certified bounds that need no solver to be checked."""
