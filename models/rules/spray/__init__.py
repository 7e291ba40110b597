"""Decisions of sprayed packets that both engines call: queues, paths, senders and receivers of transports."""
