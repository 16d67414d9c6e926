"""Callers for the API server's benchmark, in a process of their own and as thin as a client can be in Python."""
