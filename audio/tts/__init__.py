"""From text to sound: voices behind one protocol, normalisation, timing, and the worker that feeds the player."""
