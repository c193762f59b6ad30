"""The rulesets that ship with Tiltyard, as data."""
