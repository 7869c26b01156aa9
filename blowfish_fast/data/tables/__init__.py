"""Tables whose cells were merged, and where counts of tables stand."""
