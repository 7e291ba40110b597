"""What is simulated: topologies, routings, traffic and the decisions of a switch."""
