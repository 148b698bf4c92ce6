"""The window: widgets that paint views and send commands; no audio, no asyncio."""
