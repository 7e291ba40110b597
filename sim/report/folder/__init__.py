# SPDX-License-Identifier: Apache-2.0
"""What the folder of a run holds, read back: its tables as frames, its ceilings, and what is stored of its points."""
