"""The first-start guide and its parts, which the settings show again."""
