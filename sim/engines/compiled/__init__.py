# SPDX-License-Identifier: Apache-2.0
"""The compiled engine: a kernel for each discipline, of functions that Numba compiles into one loop over time.

These names mean the same in all kernels. const, state: named tuples of what a run starts from and of what changes; its
parts that disciplines have in common (net, pool, tally, program, wheels) are named tuples of their own, and are built
by keyword. packet: place of its record in the pool. host, switch, channel: their numbers in the topology. output,
input: of a switch, numbered as in :mod:`flitlab.models.rules.ports`. vc: an input VC, whose number is input * vcs + its
number there. port: of an output, counted from the first of its switch. hop: channels between switches that a packet has
taken. here, target: the switch that a packet is in and the one that it goes to; destination: the host that it goes to.
tick, now, until: times in ticks; flits: a length. What is looked at together is a record with named fields, a cache
line where that is enough. Its fields are unsigned, so that an index read from one needs no check of its sign; elsewhere
numbers are int64. A list of packets is chained through their ``next``, and ends with NOBODY.

A function that is not said to return something returns nothing.
"""
