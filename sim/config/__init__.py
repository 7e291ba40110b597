"""From a YAML file to scenarios: ``load`` reads, ``expand`` multiplies, a ``Draft`` of each is checked and built."""
