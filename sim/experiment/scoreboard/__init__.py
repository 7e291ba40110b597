# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: what rows say (file), what they gave (record), how they run (run) and their verdicts (rows)."""
