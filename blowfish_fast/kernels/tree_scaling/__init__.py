"""How the budget is divided over the nodes of a tree."""
