"""What stored answers say of the population that the records were drawn from."""
