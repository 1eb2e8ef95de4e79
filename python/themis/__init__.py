"""Themis: finish-time fair GPU-cluster scheduling (Mahajan et al., NSDI 2020)."""
