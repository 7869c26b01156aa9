"""The private border: the only room that sees true counts and draws noise."""
