"""Files and databases that commands read and write."""
