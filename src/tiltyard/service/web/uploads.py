"""Read an upload while it arrives, and stop where it is too large."""

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

from tiltyard.submissions import LIMITS, SubmissionError
from tiltyard.submissions.names import show, too_large

_CHUNK: int = 64 << 10


class BoundedUpload(FileUploadHandler):
    """Keeps one file in memory, up to the size that a submission can have.

    What goes beyond it is not read. `request.too_large` then has the words of `validate`.
    """

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self._chunks: list[bytes] = []
        self._size = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        del start
        self._size += len(raw_data)
        if self._size > LIMITS.archive_bytes:
            self._chunks.clear()
            refusal = too_large(show(self.file_name or "the file"), LIMITS.archive_bytes)
            self.request.too_large = str(refusal)  # type: ignore[union-attr]
            raise StopUpload(connection_reset=True)
        self._chunks.append(raw_data)

    def file_complete(self, file_size: int) -> SimpleUploadedFile:
        del file_size
        content = b"".join(self._chunks)
        self._chunks.clear()
        return SimpleUploadedFile(self.file_name or "", content, self.content_type or "")


def read_body(request: HttpRequest, name: str) -> bytes:
    """Return the body of a request. Raise as soon as it is larger than a submission can be."""
    chunks: list[bytes] = []
    size = 0
    while chunk := request.read(_CHUNK):
        size += len(chunk)
        if size > LIMITS.archive_bytes:
            raise too_large(show(name), LIMITS.archive_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


def read_upload(request: HttpRequest, field: str) -> tuple[str, bytes]:
    """Return name and content of an uploaded file."""
    files: Any = request.FILES
    if getattr(request, "too_large", ""):
        raise SubmissionError(request.too_large)  # type: ignore[attr-defined]
    if field not in files:
        raise SubmissionError("Choose a .zip or a .py file.")
    return files[field].name, files[field].read()
