"""The figures that ``outputs.figures`` may name: a file each, of that name."""
