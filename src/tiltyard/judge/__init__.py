"""The judge: replays candidates in clean worlds, and says what they broke."""
