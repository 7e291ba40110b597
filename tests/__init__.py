"""Tests by layer; ``ROOT`` is the folder of the project."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
