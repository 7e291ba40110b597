"""Figures and a page from a run folder: ``frames`` reads, ``plots`` draws, ``figures`` and ``html`` write."""
