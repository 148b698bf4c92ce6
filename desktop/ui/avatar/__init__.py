"""The character: a pack of drawn layers, a pose for every moment, a mouth that follows the sound."""
