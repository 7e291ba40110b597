# SPDX-License-Identifier: Apache-2.0
"""Graph metrics and physical costs of topologies: one file per metric."""
