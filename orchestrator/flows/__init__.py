"""YAML text → node tree with ranges → validated model; shared by tasks, rails, the editor and the checker."""
