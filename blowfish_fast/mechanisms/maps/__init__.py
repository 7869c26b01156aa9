"""Mechanisms for maps: grids, quadtrees, kd-trees."""
