"""How uneven the counts of every candidate bucket are."""
