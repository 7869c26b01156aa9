"""How much one policy edge can change the answers to queries."""
