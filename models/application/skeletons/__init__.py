"""Programs by name: one file each."""
