"""Record `real.json`, a report of both matches, again: `python tests/reporting/record.py`.

Run it after a change of the schema, the engine or a ruleset.
"""

import tempfile
from pathlib import Path

import msgspec

from tiltyard.matches.opponents import find_opponent
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.runs.job import Job
from tiltyard.runs.play import play_job
from tiltyard.submissions import open_submission

HERE = Path(__file__).parent


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        room = Path(directory)
        ruleset = load_ruleset()
        job = Job(
            open_submission(HERE / "submission", room / "submission"),
            ("offense", "defense"),
            ruleset,
            find_opponent("guardrail", ruleset.play.offense_opponent, room / "guardrail"),
            find_opponent("attack", ruleset.play.defense_opponent, room / "attack"),
            budget="quick",
        )
        report = play_job(job).report
    # Fixed times, so that the recording changes only with its content.
    report = msgspec.structs.replace(
        report, seconds=dict.fromkeys(report.seconds, 1.5), started="2026-01-31T14:05Z"
    )
    (HERE / "real.json").write_bytes(msgspec.json.encode(report) + b"\n")


if __name__ == "__main__":
    main()
