"""Everything about language models: the client, the offline server, prompts, and making model text speakable."""
