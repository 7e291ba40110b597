# SPDX-License-Identifier: Apache-2.0
"""Maximum concurrent flow between switches: exact, dense and sparse methods, and the choice between them."""
