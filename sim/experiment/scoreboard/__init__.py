# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: files of rows (file), records of runs (record), runs of rows (run), and verdicts (rows)."""
