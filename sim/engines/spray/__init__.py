"""What runs of sprayed packets have in common, in either engine."""
