# SPDX-License-Identifier: Apache-2.0
"""Decisions of sprayed packets that both engines call: queues, paths, senders and receivers of transports."""
