# SPDX-License-Identifier: Apache-2.0
"""What happens to a network while it is used: events as they are written, and the epochs between them."""
