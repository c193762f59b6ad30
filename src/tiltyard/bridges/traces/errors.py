"""What can be wrong with traces."""


class TraceError(ValueError):
    """The traces cannot be used at all. The message says what to do."""


class BadRunError(ValueError):
    """A run cannot be read. The reader skips it and goes on."""


class BadFileError(ValueError):
    """The rest of a file cannot be read. The reader goes on with the next file."""
