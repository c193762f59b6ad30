"""What a user can do wrong with the yardstick."""


class DojoError(ValueError):
    """The yardstick cannot run like this. The message says what to do."""
