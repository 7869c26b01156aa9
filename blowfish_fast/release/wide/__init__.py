"""Releases of domains whose cells nobody lists: heavy cells, and totals of buckets."""
