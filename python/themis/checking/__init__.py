"""What is wrong with a trace, what may be done about it, and what it asks of a cluster."""
