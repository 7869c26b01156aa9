"""Districts: public polygons, and points counted into them."""
