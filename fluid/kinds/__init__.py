"""The kinds of ceilings that a configuration can ask for, one file each."""
