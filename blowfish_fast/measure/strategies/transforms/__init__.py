"""Strategies that measure transformed cells: Haar and Fourier."""
