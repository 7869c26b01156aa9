"""Public rules of tables that the data choose: shares, numbers, merged cells."""
