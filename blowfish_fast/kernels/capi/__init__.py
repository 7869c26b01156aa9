"""The kernels as C functions."""
