"""Typed values in spoken sentences, in English and Chinese: numbers, dates, times, durations, yes/no, choices, patterns."""
