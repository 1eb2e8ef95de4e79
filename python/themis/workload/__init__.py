"""Workloads: apps and jobs, and what transforms them."""
