"""Subtitles of both sides: what was said, what sounds now, what was cut."""
