"""What Mynah looks at by itself, if the user wants it: the clock, the title of the active window."""
