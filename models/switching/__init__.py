"""Disciplines: what a switch does with what arrives, a file for each."""
