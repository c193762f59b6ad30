"""The files of `deploy/` run commands that exist, and migrations keep the rows of old databases."""

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from small_servers import ROOT, TINY_RULES, Cluster, checked, prepare, use_database
from tiltyard.cli.app import app
from tiltyard.service.environment import sqlite_url

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def parse(words: list[str]) -> str:
    """Parse a command line as `tiltyard` does, and return the command's name."""
    group: Any = get_command(app)
    name, *rest = words
    command = group.get_command(
        group.make_context("tiltyard", [name], resilient_parsing=True), name
    )
    assert command is not None, name
    command.make_context(name, rest)
    return name


def unit(path: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, strict=False)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(path, encoding="utf-8")
    return found


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_runs_a_command_that_exists(path: Path) -> None:
    service = unit(path)["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/tiltyard")
    assert parse(words) == ("serve" if "web" in path.name else "worker")
    assert service["Restart"] == "always"
    state = service["StateDirectory"]
    assert f"--directory /var/lib/{state}" in service["ExecStart"]
    if "worker" in path.name:
        assert service["RestartPreventExitStatus"] == "3"
        assert "NoNewPrivileges" not in service
        assert "RestrictNamespaces" not in service


def test_compose_runs_commands_that_exist_with_variables_that_the_example_names() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    services = found["services"]
    assert parse(services["web"]["command"]) == "serve"
    assert parse(services["worker"]["command"]) == "worker"
    assert services["web"]["ports"] == ["127.0.0.1:8080:8080"], "TLS ends in a proxy"
    assert services["worker"]["environment"].keys() == {"PGPASSWORD"}, "no secret of the web"
    example = (DEPLOY / "example.env").read_text(encoding="utf-8")
    named = {*re.findall(r"^([A-Z_]+)=", example, re.MULTILINE)}
    assert {*re.findall(r"\$\{([A-Z_]+)", text)} == named
    assert (ROOT / services["web"]["build"]["dockerfile"]).is_file()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_upgrade_keeps_the_rows_of_the_previous_schema(
    kind: str, cluster: Cluster, tmp_path: Path
) -> None:
    prepare(tmp_path)
    from django.db import DatabaseError, connection, connections, transaction  # noqa: PLC0415

    from tiltyard.service.models import Competition, Event, Submission, Upload  # noqa: PLC0415
    from tiltyard.service.prepare import migrate  # noqa: PLC0415
    from tiltyard.service.visible import EVERYBODY, board_view  # noqa: PLC0415

    url = sqlite_url(tmp_path / "old.sqlite3")
    if kind == "postgresql":
        cluster.execute("CREATE DATABASE upgraded")
        url = cluster.url("upgraded")
    use_database(url)
    try:
        before = _fill_previous_schema()
        migrate()
        assert connection.introspection.table_names()
        competition = Competition.objects.get(slug="old")
        (row,) = board_view(competition, EVERYBODY).rows
        assert (row.team, row.final) == ("Old hands", 700.0)
        submission = Submission.objects.get()
        assert bytes(Upload.objects.get(submission=submission).content) == before
        # Tables that a migration has written anew must still refuse changes.
        for rows in (Event.objects, Upload.objects):
            with pytest.raises(DatabaseError), transaction.atomic():
                rows.all().delete()
        _use_newest_schema(competition, submission)
    finally:
        connections.close_all()


def _fill_previous_schema() -> bytes:
    """Make the tables of schema 0002 and a scored submission in them. Return its bytes."""
    from django.db import connection  # noqa: PLC0415
    from django.db.migrations.executor import MigrationExecutor  # noqa: PLC0415

    from tiltyard import __version__  # noqa: PLC0415
    from tiltyard.rulesets.ruleset import read_ruleset  # noqa: PLC0415

    executor = MigrationExecutor(connection)
    others = [one for one in executor.loader.graph.leaf_nodes() if one[0] != "service"]
    state = executor.migrate([*others, ("service", "0002_append_only")])
    rules = read_ruleset(TINY_RULES)
    terms = {"ruleset_digest": rules.digest, "budget": "official", "engine": __version__}

    def add(model: str, **values: Any) -> Any:
        return state.apps.get_model("service", model).objects.create(**values)

    one = add(
        "Competition", slug="old", title="Old", ruleset_text=TINY_RULES, ruleset=rules.id, **terms
    )
    account = add("Account", username="veteran", password="!")  # noqa: S106
    team = add("Team", competition=one, name="Old hands")
    add("Membership", team=team, account=account, competition=one, captain=True)
    sent = checked("class AttackAlgorithm: pass")
    submission = add(
        "Submission",
        competition=one,
        team=team,
        account=account,
        name="attack",
        digest=sent.digest,
        tracks=["offense"],
        size=len(sent.content),
    )
    add("Upload", submission=submission, content=sent.content)
    stored = add("StoredReport", shown=b"x")
    judging = add(
        "Judging",
        submission=submission,
        competition=one,
        phase="board",
        reason="submitted",
        state="scored",
        final_score=700.0,
        offense=700.0,
        raw=700.0,
        report=stored,
        **terms,
    )
    add("Event", kind="judging.scored", competition=one, submission=submission, judging=judging)
    add("AuditEntry", action="submission.upload", account=account, competition=one)
    webhook = add("Webhook", competition=one, url="https://example.org", secret="s")  # noqa: S106
    add("Announcement", competition=one, title="Hello", made_by=account)
    assert webhook.pk
    return bytes(sent.content)


def _use_newest_schema(competition: Any, submission: Any) -> None:
    """Do what needs the new tables."""
    from tiltyard.service.actions.rejudging import begin_rejudging, rejudge  # noqa: PLC0415
    from tiltyard.service.clones import fill_sketches  # noqa: PLC0415
    from tiltyard.service.engine.worker import check_schema  # noqa: PLC0415

    check_schema()
    account = submission.account
    rejudging = begin_rejudging(competition, account, engine="9.9.9")
    assert rejudge(rejudging, [submission], account) == 1
    assert fill_sketches(competition) == 0
