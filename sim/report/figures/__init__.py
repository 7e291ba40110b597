# SPDX-License-Identifier: Apache-2.0
"""The figures of a run: marks on axes, and a module for each kind of figure in ``kinds``."""
