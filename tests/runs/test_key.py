"""Key files."""

from pathlib import Path

import pytest

from tiltyard.runs.key import KeyFileError, make_key, read_key


def test_a_file_that_is_not_a_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(make_key())
    assert len(read_key(path).secret) == 64
    for content in ("", "abc", "x" * 64, "0" * 63):
        path.write_text(content)
        with pytest.raises(KeyFileError, match="tiltyard key"):
            read_key(path)
    with pytest.raises(KeyFileError, match="cannot be read"):
        read_key(tmp_path / "nowhere")
