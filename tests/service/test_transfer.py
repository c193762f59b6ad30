"""A whole competition as files: what the CLI reads of it, and what another server makes of it."""

import io
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from small_servers import ATTACK, ROOT, TINY_RULES, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names: Iterator[int] = iter(range(10_000))


@pytest.fixture(scope="module")
def season(sqlite: str) -> Any:
    assert sqlite
    from tiltyard.service.demo import load_season  # noqa: PLC0415

    return load_season(ROOT / "docs/season")


def ranks(competition: Any) -> list[tuple[int, str, float | None]]:
    from tiltyard.service.visible import EVERYBODY, board_view  # noqa: PLC0415

    return [(row.rank, row.team, row.final) for row in board_view(competition, EVERYBODY).rows]


def test_the_cli_ranks_an_export_as_the_board_does(season: Any, tmp_path: Path) -> None:
    from tiltyard.service.transfer import export_competition  # noqa: PLC0415
    from tiltyard.standings.leaderboard import make_leaderboard, read_disqualified  # noqa: PLC0415
    from tiltyard.standings.report_set import gather  # noqa: PLC0415

    assert export_competition(season, tmp_path / "season") == 8
    out = read_disqualified(tmp_path / "season/disqualified.toml")
    (board,) = make_leaderboard(gather([tmp_path / "season"]), out).boards
    found = [(one.rank, one.run.name, one.run.final_score) for one in board.standings]
    assert found == ranks(season)
    assert len(found) > 4
    assert {one.run.name for one in board.disqualified} == {
        one.team.name for one in season.submissions.exclude(disqualified="")
    }


def test_an_import_has_the_same_board_and_new_accounts(season: Any, tmp_path: Path) -> None:
    from tiltyard.service.errors import ServiceError  # noqa: PLC0415
    from tiltyard.service.models import AuditEntry, Judging  # noqa: PLC0415
    from tiltyard.service.transfer import (  # noqa: PLC0415
        FILE,
        export_competition,
        import_competition,
    )

    export_competition(season, tmp_path / "files")
    with pytest.raises(ServiceError, match="already; give this one another --name"):
        import_competition(tmp_path / "files")
    with pytest.raises(ServiceError, match="is not empty"):
        export_competition(season, tmp_path / "files")
    made = import_competition(tmp_path / "files", "again")
    assert ranks(made) == ranks(season)
    assert made.ruleset_digest == season.ruleset_digest
    assert Judging.objects.filter(competition=made).count() == season.judgings.count()
    old = {one.account for team in season.teams.all() for one in team.memberships.all()}
    new = {one.account for team in made.teams.all() for one in team.memberships.all()}
    assert not old & new, "a name that exists here may be another person's"
    assert not any(one.has_usable_password() for one in new)
    assert AuditEntry.objects.filter(action="competition.import", competition=made).exists()
    # Files that were changed are refused, and nothing of them stays.
    first, second, *_ = sorted((tmp_path / "files/submissions").glob("*.zip"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(ServiceError, match="has another digest"):
        import_competition(tmp_path / "files", "broken")
    (tmp_path / "files" / FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(ServiceError, match="is not the file of an export"):
        import_competition(tmp_path / "files", "broken")
    assert type(made).objects.filter(slug="broken").count() == 0


def test_a_run_of_an_export_can_be_verified(tmp_path: Path) -> None:
    from tiltyard.rulesets.ruleset import read_ruleset  # noqa: PLC0415
    from tiltyard.runs.evaluate import evaluate  # noqa: PLC0415
    from tiltyard.runs.job import Worlds  # noqa: PLC0415
    from tiltyard.runs.key import read_key  # noqa: PLC0415
    from tiltyard.runs.request import Request  # noqa: PLC0415
    from tiltyard.runs.store import Store, full_report  # noqa: PLC0415
    from tiltyard.runs.verify import verify  # noqa: PLC0415
    from tiltyard.service.actions.judgings import store_report  # noqa: PLC0415
    from tiltyard.service.terms import key_of  # noqa: PLC0415
    from tiltyard.service.transfer import export_competition  # noqa: PLC0415

    competition = make_competition(f"e{next(_names)}")
    source = ATTACK.format(word="export")
    judging = send(make_team(competition, "Team = 'x'\n"), source).judgings.get()
    (tmp_path / "attack.py").write_text(source, encoding="utf-8")
    store = Store(tmp_path / "store")
    request = Request(str(tmp_path / "attack.py"), read_ruleset(TINY_RULES))
    done = evaluate(request, store, worlds=Worlds(key=key_of(competition, "board")))
    full = full_report(store.directory(done.report.run_id), done.report)
    store_report(judging, done.report, full)
    judging.state = "scored"
    judging.save()
    export_competition(competition, tmp_path / "files")
    (run,) = (tmp_path / "files/runs").iterdir()
    key = read_key(tmp_path / "files/board.key")
    checked = verify(run / "report.json", Store(tmp_path / "new"), worlds=Worlds(key=key))
    assert checked.same, checked
    assert checked.expected == judging.results
    assert (tmp_path / "files/board.key").stat().st_mode & 0o077 == 0


def test_an_organizer_downloads_an_export(season: Any) -> None:
    from django.test import Client  # noqa: PLC0415

    client = Client(headers={"host": "127.0.0.1"})
    account = make_account(f"organizer {next(_names)}", is_staff=True)
    client.force_login(account, "django.contrib.auth.backends.ModelBackend")
    answer = client.get(f"/organize/c/{season.slug}/export")
    content = b"".join(getattr(answer, "streaming_content"))  # noqa: B009 - a test's answer has it
    assert answer["content-disposition"] == 'attachment; filename="season.zip"'
    assert answer["cache-control"] == "no-store"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
    assert "season/competition.json" in names
    assert sum(name.endswith("/report.json") for name in names) == 8


def test_the_commands_take_a_competition_to_another_server(season: Any, tmp_path: Path) -> None:
    from tiltyard.service.transfer import export_competition  # noqa: PLC0415

    def tiltyard(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tiltyard", *words, "--directory", str(tmp_path / "new")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    export_competition(season, tmp_path / "files")
    done = tiltyard("import", str(tmp_path / "files"), "--name", "copy")
    assert done.stdout == "Imported: The season, at /c/copy\n", done.stderr
    again = tiltyard("import", str(tmp_path / "files"), "--name", "copy")
    assert (again.returncode, "There is a competition copy already" in again.stderr) == (2, True)
    back = tiltyard("export", "copy", str(tmp_path / "back"))
    assert "with 8 submissions" in back.stdout, back.stderr
    for name in ("ruleset.toml", "disqualified.toml"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "files" / name).read_bytes()
    unknown = tiltyard("export", "other", str(tmp_path / "other"))
    assert (unknown.returncode, "there is copy" in unknown.stderr) == (2, True)
