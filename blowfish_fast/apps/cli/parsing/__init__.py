"""Text of the command line and of job files into domains, policies, workloads."""
