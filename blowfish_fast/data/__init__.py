"""Public cells, and tables counted into them."""
