"""What a user did wrong, in words for the user."""


class ServiceError(Exception):
    """An action is refused. The message says why and what to do; `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
