"""Conversations as tests: `mynah flows test`, and the host in which they run."""
