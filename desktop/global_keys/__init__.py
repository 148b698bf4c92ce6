"""Keys that work in every program, where the platform gives them to us."""
