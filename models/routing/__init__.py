# SPDX-License-Identifier: Apache-2.0
"""Routings by kind, and :class:`~flitlab.models.routing.routes.Routes` for all."""
