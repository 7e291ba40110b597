# SPDX-License-Identifier: Apache-2.0
"""The reference engine: the model as SimPy processes, the executable specification.

Read in this order: ``clock`` (time and its phases), ``packet``, ``network`` (what every discipline has:
hosts, outputs, the life of a packet), then a file for each discipline, ``vct``, ``wormhole`` and
``deflection``; ``ledger`` only counts. ``ranks`` is what hosts do that run a program.
"""
