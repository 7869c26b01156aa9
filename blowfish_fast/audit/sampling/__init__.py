"""What samples prove about a likelihood ratio."""
