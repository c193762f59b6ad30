"""Schemas, builders, charts and pages: everything that Tiltyard shows of its results."""
