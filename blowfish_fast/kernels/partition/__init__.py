"""Partitions into buckets, least costly or sampled."""
