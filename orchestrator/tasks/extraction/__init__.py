"""Typed values in spoken sentences, English and Chinese: numbers, moments, durations, yes/no, choices, patterns."""
