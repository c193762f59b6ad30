"""Real workers, real evaluations, a real PostgreSQL: kill, freeze, restart, stop."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from small_servers import (
    ATTACK,
    SLOW_ATTACK,
    TINY_RULES,
    Cluster,
    make_competition,
    make_team,
    running,
    send,
    use_database,
    wait_until,
)
from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import Machine

_names: Iterator[int] = iter(range(1_000))
TAKEOVER_SECONDS = 30.0
BROKEN_ATTACK = """
class AttackAlgorithm:
    def run(self, env, config):
        raise ValueError
"""


def state_of(judging: Any) -> str:
    judging.refresh_from_db()
    return str(judging.state)


def enter(competition: Any, source: str) -> Any:
    return send(make_team(competition, f"Team {next(_names)}"), source).judgings.get()


def is_running(judging: Any) -> bool:
    """Return whether the process of an evaluation is under way."""
    return state_of(judging) == "running" and bool(evaluations_in(f"judging-{judging.pk}/"))


def evaluations_in(directory: Path | str) -> list[str]:
    """Return the command lines of evaluations that use a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"evaluate" in words and str(directory).encode() in b" ".join(words):
            found.append(words[0].decode())
    return found


def cli_digest(judging: Any, source: str, scratch: Path) -> str:
    """Return the digest that `tiltyard evaluate` gives to a submission under the same terms."""
    from tiltyard.rulesets.ruleset import read_ruleset  # noqa: PLC0415
    from tiltyard.runs.evaluate import evaluate  # noqa: PLC0415
    from tiltyard.runs.job import Worlds  # noqa: PLC0415
    from tiltyard.runs.request import Request  # noqa: PLC0415
    from tiltyard.runs.store import Store  # noqa: PLC0415
    from tiltyard.service.terms import key_of  # noqa: PLC0415

    path = scratch / "attack.py"
    path.write_text(source, encoding="utf-8")
    key = key_of(judging.competition, judging.phase)
    request = Request(str(path), read_ruleset(TINY_RULES))
    return evaluate(request, Store(scratch / "store"), worlds=Worlds(key=key)).report.digest


def test_others_take_over_from_a_killed_and_from_a_frozen_worker(
    postgresql: str, tmp_path: Path
) -> None:
    from tiltyard.service.models import Worker  # noqa: PLC0415

    competition = make_competition("takeover")
    slow = SLOW_ATTACK.format(seconds=3)
    with running(postgresql, *(tmp_path / name for name in ("a", "b", "c"))) as workers:
        one = enter(competition, slow)
        two = enter(competition, slow.replace("rm -rf", "rm  -rf"))
        wait_until(lambda: is_running(one) and is_running(two))
        killed, frozen = one.worker.name, two.worker.name
        (third,) = {*workers} - {killed, frozen}
        workers[killed].kill()
        workers[frozen].send_signal(signal.SIGSTOP)
        wait_until(lambda: not evaluations_in(tmp_path / killed))
        # The only worker that is left has begun it anew.
        taken = wait_until(lambda: state_of(one) != "queued" and one.worker.name == third)
        assert taken < TAKEOVER_SECONDS
        wait_until(lambda: state_of(one) == "scored" and state_of(two) == "scored")
        assert {worker.name for worker in Worker.objects.filter(lost=True)} == {killed, frozen}
        workers[frozen].send_signal(signal.SIGCONT)
        # It finds that it was given up, and begins anew under another id.
        wait_until(lambda: Worker.objects.filter(name=frozen, ended_at=None).exists())
    for judging in (one, two):
        judging.refresh_from_db()
        assert (judging.failures, judging.worker.name) == (0, third)
        kinds = [*judging.events.order_by("pk").values_list("kind", flat=True)]
        assert kinds.count("judging.scored") == 1
        assert kinds[-1] == "judging.scored"
    assert one.results == cli_digest(one, slow, tmp_path)


def test_failures_of_the_server_are_not_the_submissions(
    postgresql: str, cluster: Cluster, tmp_path: Path
) -> None:
    from django.db import connections  # noqa: PLC0415 - after Django is ready

    from tiltyard.service.models import Judging  # noqa: PLC0415

    competition = make_competition("restart")
    with running(postgresql, tmp_path / "w") as workers:
        judging = enter(competition, SLOW_ATTACK.format(seconds=2))
        wait_until(lambda: is_running(judging))
        cluster.stop("immediate")
        cluster.start()
        connections.close_all()
        # A ruleset that this version reads in another way cannot be played here.
        unknown = enter(competition, ATTACK.format(word="hello"))
        Judging.objects.filter(pk=unknown.pk).update(ruleset_digest="0" * 64)
        bad = enter(competition, BROKEN_ATTACK)
        wait_until(lambda: state_of(judging) == "scored")
        assert workers["w"].poll() is None
        assert (judging.fence, judging.failures) == (1, 0), "it was played once"
        wait_until(lambda: state_of(bad) not in ("queued", "running"))
        wait_until(lambda: state_of(unknown) == "queued" and unknown.failures > 0)
        # A worker that is stopped gives back what it plays.
        stopped = enter(competition, SLOW_ATTACK.format(seconds=16))
        wait_until(lambda: is_running(stopped))
    assert (state_of(bad), bad.report is not None) == ("unscored", True)
    assert "another ruleset" in unknown.events.filter(kind="judging.requeued")[0].data["why"]
    assert state_of(stopped) == "queued"
    assert stopped.failures == 0
    assert not evaluations_in(tmp_path / "w")


def test_a_process_that_freezes_in_a_transaction_blocks_nobody_for_long(postgresql: str) -> None:
    from django.db import connection, transaction  # noqa: PLC0415 - after Django is ready
    from psycopg import InternalError, connect  # noqa: PLC0415

    from tiltyard.service.actions.records import try_lock  # noqa: PLC0415
    from tiltyard.service.environment import session_options  # noqa: PLC0415

    def is_free() -> bool:
        with transaction.atomic():
            return try_lock("dispatch")

    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("10s",)
    with connect(postgresql, options=session_options(postgresql)) as frozen:
        frozen.execute("SELECT pg_try_advisory_xact_lock(%s)", [crc32(b"dispatch")])
        assert not is_free()
        assert wait_until(is_free) < TAKEOVER_SECONDS
        with pytest.raises(InternalError, match="idle-in-transaction"):
            frozen.execute("SELECT 1")


def test_a_worker_refuses_a_machine_below_level_a(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiltyard.service.engine import worker  # noqa: PLC0415

    monkeypatch.setattr(worker, "probe", lambda: Machine(Level.B, ()))
    with pytest.raises(worker.MachineError, match="level B, and a worker needs level A"):
        worker.work(worker.Post(sqlite, tmp_path))


def test_a_worker_refuses_a_database_without_tables(sqlite: str, tmp_path: Path) -> None:
    from tiltyard.service.engine import worker  # noqa: PLC0415

    try:
        use_database(f"sqlite:///{tmp_path}/new.sqlite3")
        with pytest.raises(worker.WorkerError, match="Start `tiltyard serve`"):
            worker.check_schema()
    finally:
        use_database(sqlite)
