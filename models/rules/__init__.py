# SPDX-License-Identifier: Apache-2.0
"""Pure decisions of the model, in the subset Numba compiles, called by both engines.

Everything here works on integers only and depends on nothing but its arguments, so that the two
engines, any number of processes and any order of evaluation give the same results.
"""
