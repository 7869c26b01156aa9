"""A model of greatest entropy, fitted to noisy tables on a junction tree."""
