# SPDX-License-Identifier: Apache-2.0
"""RDMA over Ethernet (RoCEv2): ordered delivery by go-back-N, and rates that congestion controls set."""
