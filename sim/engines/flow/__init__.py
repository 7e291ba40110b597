# SPDX-License-Identifier: Apache-2.0
"""Messages as flows that share the channels max-min fairly: what both engines of mode ``flow`` have in common."""
