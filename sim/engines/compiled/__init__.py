# SPDX-License-Identifier: Apache-2.0
"""The compiled engine: one kernel per switching mode, of functions that Numba compiles into one loop over time.

Names mean the same in all kernels:

* const, state: named tuples of a run's constants and of what changes. Parts that switching modes share (net, pool,
  counters, program, timing wheels) are named tuples of their own, built by keyword.
* packet: index of its record in the pool.
* host, switch, channel: numbers in the topology. src_ and dst_ are the ends of a packet's route.
* output, input: of a switch, numbered as in :mod:`flitlab.models.rules.ports`. port: of an output, counted from the
  first of its switch.
* vc: an input VC; its number is input * vcs + its number in the input.
* hop: channels between switches that a packet has taken.
* tick, now, until: times in ticks. flits: a length.

Data that are used together form a record with named fields, of one cache line where possible. Its fields are unsigned,
so that an index read from one needs no check of its sign; all other numbers are int64. A list of packets is chained
through their ``next`` field and ends with NONE. Functions without a documented return value return nothing.
"""

from typing import Any, TypeAlias

Constants: TypeAlias = Any
"""The constants of a run: the named tuple of its switching mode."""

State: TypeAlias = Any
"""What changes in a run: the named tuple of its switching mode, with the fields that a function reads."""
