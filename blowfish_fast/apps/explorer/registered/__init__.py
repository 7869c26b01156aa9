"""Questions that were stated before anything was drawn, and where the log has them."""
