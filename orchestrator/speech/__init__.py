"""Output intents: their words and their queue. Pure: no device, no thread, no clock."""
