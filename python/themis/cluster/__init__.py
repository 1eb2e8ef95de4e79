"""Clusters: the machines, short forms, capacity over time, machine lists of traces."""
