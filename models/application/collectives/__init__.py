"""Collective operations as rounds of messages, one file for each; ``choose`` says which algorithm is taken when."""
