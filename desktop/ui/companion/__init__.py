"""The character on the desktop without a window around it, and its place in the tray."""
