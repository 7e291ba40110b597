# SPDX-License-Identifier: Apache-2.0
"""What is simulated: topologies, routings, traffic and the decisions of a switch."""
