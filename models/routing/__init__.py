"""Routings: one file per kind, :class:`~models.routing.routes.Routes` for all."""
