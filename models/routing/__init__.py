"""Routings: one file per kind, :class:`~flitlab.models.routing.routes.Routes` for all."""
