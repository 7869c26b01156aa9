"""What comes out: estimates, answers, intervals, slices, synthetic records."""
