"""What stands beside the reading of questions in SQL."""
