"""The conversation: turns, interruption, what was heard, what is said next."""
