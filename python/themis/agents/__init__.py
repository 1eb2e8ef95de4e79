"""App schedulers written in Python."""
