# SPDX-License-Identifier: Apache-2.0
"""Runs a study into a resumable folder; the only package that uses both engines and ceilings."""
