"""Running a stranger's code: confined, or not at all."""
