"""Studies: calibration, susceptibility, comparison and validation."""
