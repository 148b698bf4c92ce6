"""Dialog rails: text → user intent → rail → bot intent → words."""
