# SPDX-License-Identifier: Apache-2.0
"""The reference engine: the model as SimPy processes, the executable specification.

Read in this order: ``clock`` (time and the phases of a tick), ``packet``, ``network`` (hosts, outputs and packets of
every switching mode), then a file for each switching mode, ``vct``, ``wormhole`` and ``deflection``. ``ledger`` only
counts. ``ranks`` runs the programs of hosts, ``replies`` counts the replies that hosts owe.
"""
