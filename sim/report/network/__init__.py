"""Drawings of networks: of a topology as such, and of where its flows are stuck."""
