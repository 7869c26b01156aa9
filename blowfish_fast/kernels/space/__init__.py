"""Cells, boxes and curves of a grid."""
