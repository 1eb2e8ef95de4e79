"""Policies by name, and policies written in Python."""
