"""Families of interconnect graphs: one file each."""
