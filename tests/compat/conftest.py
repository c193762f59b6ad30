"""Fixtures: submissions for `aicomp_sdk`."""

import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tiltyard.submissions import Submission, open_submission

HERE = Path(__file__).parent
Open = Callable[..., Submission]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Return a function that opens a folder of `submissions`, or the given sources."""
    with tempfile.TemporaryDirectory(prefix="tiltyard-test-") as name:
        root = Path(name)
        root.chmod(0o755)

        def take(folder: str = "", **sources: str) -> Submission:
            number = len(list(root.iterdir()))
            into = root / f"opened-{number}"
            if folder:
                return open_submission(HERE / "submissions" / folder, into)
            source = root / f"source-{number}"
            source.mkdir()
            for module, text in sources.items():
                path = source / f"{module}.py"
                path.write_text(textwrap.dedent(text), encoding="utf-8")
            return open_submission(source, into)

        yield take
