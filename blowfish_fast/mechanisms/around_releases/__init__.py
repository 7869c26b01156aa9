"""What is bought before or after a release: how many records count, and less noise."""
