"""Private choices: partitions of the cells, and other selections."""
