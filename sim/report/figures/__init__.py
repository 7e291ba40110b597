"""The figures of a run: marks on axes, and a file for each kind of figure in ``kinds``."""
