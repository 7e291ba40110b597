"""One of each kind of component that flitlab can be given from outside, as small as it can be."""
