"""The published schema is current and describes every field."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tiltyard.reporting.schema import (
    SCHEMA_VERSION,
    Report,
    ReportError,
    json_schema,
    published_schema,
    read_report,
    write_report,
)

PUBLISHED = Path(__file__).parents[2] / "docs" / "report.schema.json"


def test_the_published_schema_is_current() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == published_schema(), "run `make schema`"


def test_every_field_is_described() -> None:
    silent = [
        f"{name}.{field}"
        for name, definition in json_schema()["$defs"].items()
        for field, described in {"": definition, **definition.get("properties", {})}.items()
        if not described.get("description")
    ]
    assert silent == []


def test_a_report_survives_writing_and_reading(real: Report) -> None:
    assert read_report(write_report(real)) == real


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": SCHEMA_VERSION + 1}, "--fresh"),
        ({"schema_version": 1}, "has schema version 1, .* reads only version 4; run .* --fresh"),
        ({"schema_version": None}, "has no schema_version"),
        ({"offense": {"score": "high"}}, "not a report"),
        ({"failures": [{"track": "<b>", "kind": "run", "message": ""}]}, "not a report"),
        ({"surprise": 1}, "not a report"),
    ],
)
def test_invalid_reports_are_refused(real: Report, change: dict[str, Any], message: str) -> None:
    changed = {**msgspec.to_builtins(real), **change}
    with pytest.raises(ReportError, match=message):
        read_report(msgspec.json.encode(changed))
