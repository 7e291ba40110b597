"""Transports: how hosts send datagrams. One file a control law; ``newreno`` is the machine around it."""
