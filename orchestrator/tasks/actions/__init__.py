"""Actions: what a flow or a rail can do besides talking."""
