"""Contingency tables of wide domains: prices, plans, least squares, noise laws."""
