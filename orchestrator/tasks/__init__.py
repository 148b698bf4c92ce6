"""Task flows: commands, state, processor, executor, actions. Knows nothing about natural language or storage."""
