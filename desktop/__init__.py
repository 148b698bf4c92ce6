"""The program a person starts: commands, composition, window."""
