"""How a table is described: columns, policies and persons, below every face."""
