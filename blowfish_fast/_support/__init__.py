"""Support: validation, types, optional imports, HTML, colours, worker processes."""
