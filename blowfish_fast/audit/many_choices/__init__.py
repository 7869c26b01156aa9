"""Choices made many times at once: from one preparation, or by a twin."""
