"""Vocabulary shared by all packages: a leaf that imports only the standard library."""
