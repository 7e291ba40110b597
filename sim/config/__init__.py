"""From a YAML file to scenarios: ``load`` reads, ``expand`` multiplies, ``schema`` checks, ``build`` builds."""
