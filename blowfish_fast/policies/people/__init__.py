"""Policies about people: all records of a person, and whether somebody is there."""
