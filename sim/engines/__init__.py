"""The two engines: ``reference`` (SimPy, readable) and ``compiled`` (Numba, fast); equal packet for packet."""
