# SPDX-License-Identifier: Apache-2.0
"""The two engines: ``reference`` (SimPy, readable) and ``compiled`` (Numba, fast); equal packet for packet."""
