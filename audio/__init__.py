"""Sound in and out: capture, echo cancellation, voice activity, recognition, synthesis, playback. No asyncio, no Qt."""
