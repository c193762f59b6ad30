"""Submissions to start from: `tiltyard init` copies them."""
