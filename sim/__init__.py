"""What happens: engines, measurement, experiments, reports and the command line."""
