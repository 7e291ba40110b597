# SPDX-License-Identifier: Apache-2.0
"""Pure decisions of the model, in the subset that Numba compiles, called by both engines.

All functions use integers only and depend on nothing but their arguments. So both engines, any number of processes and
any order of evaluation give the same results.
"""
