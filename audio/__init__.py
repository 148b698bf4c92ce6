"""Sound in and out: capture, echo cancellation, voice activity, recognition, synthesis, playback. Knows neither asyncio nor Qt."""
