"""One run, from inputs to a result."""
