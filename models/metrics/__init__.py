# SPDX-License-Identifier: Apache-2.0
"""Graph metrics and physical costs of topologies: a file for each metric, or for several of one topic."""
