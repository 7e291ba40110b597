# SPDX-License-Identifier: Apache-2.0
"""Routings: one file per kind, and :class:`~flitlab.models.routing.routes.Routes` for all."""
