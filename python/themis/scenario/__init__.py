"""Scenarios: one file that says all that a run depends on."""
