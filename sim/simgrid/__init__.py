"""The same program in SimGrid: an independent model of the network to compare times with."""
