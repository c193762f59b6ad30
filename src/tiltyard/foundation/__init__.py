"""What every room stands on: keyed randomness, safe files, append-only logs."""
