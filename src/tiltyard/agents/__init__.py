"""The agents that a match can be played with."""
