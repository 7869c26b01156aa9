"""Haar and Fourier transforms."""
