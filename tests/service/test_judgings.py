"""The rules of the data model, on both databases: nothing twice, lost or overwritten."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from small_servers import ATTACK, checked, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("database")
_names: Iterator[int] = iter(range(10_000))


@pytest.fixture
def m() -> Any:
    """Return the modules under test, which can be imported once Django is ready."""
    from django.db import DatabaseError, IntegrityError, connection, transaction  # noqa: PLC0415

    from tiltyard.service import models  # noqa: PLC0415
    from tiltyard.service.actions import (  # noqa: PLC0415
        accounts,
        judgings,
        quota,
        rejudging,
        submit,
        teams,
    )
    from tiltyard.service.engine import dispatch, heartbeat  # noqa: PLC0415
    from tiltyard.service.errors import ServiceError  # noqa: PLC0415

    return SimpleNamespace(
        DatabaseError=DatabaseError,
        IntegrityError=IntegrityError,
        ServiceError=ServiceError,
        accounts=accounts,
        connection=connection,
        dispatch=dispatch,
        heartbeat=heartbeat,
        judgings=judgings,
        models=models,
        quota=quota,
        rejudging=rejudging,
        submit=submit,
        teams=teams,
        transaction=transaction,
    )


@pytest.fixture
def competition() -> Any:
    return make_competition(f"c{next(_names)}", quota=3)


@pytest.fixture
def team(competition: Any) -> Any:
    return make_team(competition, "Knights")


def attack() -> str:
    return ATTACK.format(word=f"word {next(_names)}")


def report_of(judging: Any, score: float | None = 500.0) -> Any:
    """Return a report such as an evaluation writes, from the season's, with another score."""
    from msgspec import structs  # noqa: PLC0415

    from small_servers import ROOT  # noqa: PLC0415
    from tiltyard.runs.store import load_report  # noqa: PLC0415

    report = load_report(ROOT / "docs/season/reports/rookies.json")
    assert report.offense is not None
    offense = structs.replace(report.offense, score=score or 0.0)
    return structs.replace(
        report, offense=offense, defense=None, final_score=score, digest=f"{judging.pk:064d}"
    )


def start(m: Any, judging: Any, worker: Any = None) -> Any:
    """Give a judging a job and a worker, as the dispatcher and the engine do."""
    worker = worker or m.models.Worker.objects.create(name="w", engine="0.1.0", level="A")
    m.dispatch.dispatch(FakeJobs())
    judging.refresh_from_db()
    return m.judgings.claim(judging.pk, judging.job, worker)


class FakeJobs:
    """The engine, without an engine."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.running: list[Any] = []
        self.gone: set[str] = set()
        self.dropped: list[str] = []

    def start(self, job: str, judging: int, engine: str) -> None:
        del judging, engine
        self.started.append(job)

    def taken(self) -> list[Any]:
        return self.running

    def ended(self, jobs: list[str]) -> set[str]:
        return self.gone & {*jobs}

    def drop(self, job: str) -> None:
        self.dropped.append(job)


def test_a_submission_is_judged_once_under_the_same_terms(m: Any, team: Any) -> None:
    submission = send(team, attack())
    (judging,) = submission.judgings.all()
    assert m.judgings.queue_judging(submission, "board", "submitted").pk == judging.pk
    values = {
        name: getattr(judging, name)
        for name in ("ruleset_digest", "budget", "key", "engine", "phase", "reason")
    }
    with pytest.raises(m.IntegrityError), m.transaction.atomic():
        m.models.Judging.objects.create(
            submission=submission, competition=submission.competition, **values
        )


def test_a_score_needs_the_state_that_says_so(m: Any, team: Any) -> None:
    judging = send(team, attack()).judgings.get()
    rows = m.models.Judging.objects.filter(pk=judging.pk)
    for wrong in ({"state": "scored"}, {"final_score": 1.0}):
        with pytest.raises(m.IntegrityError), m.transaction.atomic():
            rows.update(**wrong)


@pytest.mark.parametrize("table", ["Event", "AuditEntry", "Upload", "StoredReport"])
def test_what_is_appended_can_never_be_changed_or_deleted(m: Any, team: Any, table: str) -> None:
    judging = send(team, attack()).judgings.get()
    held = start(m, judging)
    m.judgings.finish(held, report_of(judging), None)
    rows = getattr(m.models, table).objects.all()
    before = rows.count()
    assert before
    field = {"Upload": "content", "StoredReport": "shown"}.get(table, "data")
    new = b"" if table in ("Upload", "StoredReport") else {}
    with pytest.raises(m.DatabaseError, match="never changed or deleted"), m.transaction.atomic():
        rows.update(**{field: new})
    with (
        pytest.raises(m.DatabaseError, match="never changed or deleted"),
        m.transaction.atomic(),
        m.connection.cursor() as cursor,
    ):
        cursor.execute(f"DELETE FROM {rows.model._meta.db_table}")  # noqa: S608
    assert rows.count() == before


def test_the_same_bytes_of_a_team_are_one_submission(m: Any, team: Any) -> None:
    source = attack()
    first = send(team, source)
    assert send(team, source).pk == first.pk
    assert m.quota.quota_of(team).left == 2
    m.judgings.cancel(first, team.memberships.get().account)
    again = send(team, source)
    assert again.pk != first.pk
    assert again.judgings.get().state == "queued"


def test_equal_bytes_of_two_teams_are_played_once(m: Any, competition: Any) -> None:
    source = attack()
    mine = send(make_team(competition, "A"), source).judgings.get()
    other = send(make_team(competition, "B"), source).judgings.get()
    jobs = FakeJobs()
    m.dispatch.dispatch(jobs)
    mine.refresh_from_db()
    other.refresh_from_db()
    assert mine.job in jobs.started
    assert not other.job
    worker = m.models.Worker.objects.create(name="w", engine="0.1.0", level="A")
    held = m.judgings.claim(mine.pk, mine.job, worker)
    m.dispatch.dispatch(jobs)
    other.refresh_from_db()
    assert not other.job, "its twin is still being played"
    assert m.judgings.finish(held, report_of(mine, 321.0), None)
    assert start(m, other, worker) is None, "there is nothing to play"
    other.refresh_from_db()
    mine.refresh_from_db()
    assert (other.state, other.final_score) == ("scored", 321.0)
    assert other.report_id == mine.report_id
    assert other.results == mine.results


def test_a_result_counts_only_under_the_fence_of_its_start(m: Any, team: Any) -> None:
    judging = send(team, attack()).judgings.get()
    frozen = start(m, judging)
    judging.refresh_from_db()
    assert m.judgings.take_away(judging.job)
    second = start(m, judging)
    assert not m.judgings.note_progress(frozen, "awake again")
    assert not m.judgings.finish(frozen, report_of(judging, 1.0), None)
    assert m.judgings.finish(second, report_of(judging, 2.0), None)
    assert not m.judgings.finish(second, report_of(judging, 3.0), None)
    judging.refresh_from_db()
    assert judging.final_score == 2.0
    kinds = [*judging.events.order_by("pk").values_list("kind", flat=True)]
    assert kinds == [
        "judging.queued",
        "judging.started",
        "judging.taken_over",
        "judging.started",
        "judging.scored",
    ]


def test_a_worker_that_was_given_up_cannot_claim(m: Any, team: Any) -> None:
    judging = send(team, attack()).judgings.get()
    worker = m.models.Worker.objects.create(name="w", engine="0.1.0", level="A")
    old = m.heartbeat.Now() - timedelta(minutes=1)
    m.models.Worker.objects.filter(pk=worker.pk).update(heartbeat_at=old)
    assert m.heartbeat.give_up_silent_workers() == 1
    assert start(m, judging, worker) is None
    judging.refresh_from_db()
    assert judging.state == "queued"


def test_jobs_of_the_dead_and_jobs_that_ended_are_taken_back(m: Any, competition: Any) -> None:
    alive = m.models.Worker.objects.create(name="alive", engine="0.1.0", level="A")
    first, second, third = (
        send(make_team(competition, name), attack()).judgings.get() for name in "ABC"
    )
    jobs = FakeJobs()
    m.dispatch.dispatch(jobs)
    for one in (first, second, third):
        one.refresh_from_db()
    # The first is taken by a worker that died before it could claim; the second by a living one.
    jobs.running = [
        SimpleNamespace(workflow_id=first.job, executor_id="0" * 32),
        SimpleNamespace(workflow_id=second.job, executor_id=alive.pk.hex),
    ]
    assert m.dispatch.take_from_the_dead(jobs) == 1
    assert jobs.dropped == [first.job]
    jobs.gone = {third.job}
    assert m.dispatch.take_from_ended_jobs(jobs) == 1
    m.dispatch.dispatch(jobs)
    names = {}
    for one in (first, second, third):
        before = one.job
        one.refresh_from_db()
        names[before] = one.job
    assert names == {
        f"judging-{first.pk}-1": f"judging-{first.pk}-2",
        f"judging-{second.pk}-1": f"judging-{second.pk}-1",
        f"judging-{third.pk}-1": f"judging-{third.pk}-2",
    }


def test_our_failures_take_no_quota_and_end_with_an_organizer(m: Any, team: Any) -> None:
    judging = send(team, attack()).judgings.get()
    assert m.quota.quota_of(team).left == 2
    for _ in range(m.judgings.MAX_FAILURES):
        m.models.Judging.objects.filter(pk=judging.pk).update(not_before=m.heartbeat.Now())
        held = start(m, judging)
        m.judgings.give_back(held, "the disk is full")
    judging.refresh_from_db()
    assert (judging.state, judging.why) == ("broken", "the disk is full")
    assert m.quota.quota_of(team).left == 3
    organizer = make_account(f"organizer {next(_names)}", is_staff=True)
    m.judgings.retry(judging, organizer)
    held = start(m, judging)
    assert m.judgings.finish(held, report_of(judging), None)
    assert m.quota.quota_of(team).left == 2, "now the competitor has had a result"


def test_a_stopped_worker_gives_back_without_a_failure(m: Any, team: Any) -> None:
    judging = send(team, attack()).judgings.get()
    m.judgings.give_back(start(m, judging), "the worker stopped", failed=False)
    judging.refresh_from_db()
    assert (judging.state, judging.failures, judging.job) == ("queued", 0, "")


def test_a_competitor_cancels_before_the_start_only(m: Any, team: Any) -> None:
    account = team.memberships.get().account
    waiting, started = send(team, attack()), send(team, attack())
    held = start(m, started.judgings.get())
    with pytest.raises(m.ServiceError, match="has started"):
        m.judgings.cancel(started, account)
    m.judgings.cancel(waiting, account)
    assert waiting.judgings.get().state == "cancelled"
    assert m.quota.quota_of(team).left == 2
    assert m.judgings.finish(held, report_of(started.judgings.get()), None)


def test_a_competitor_cannot_cancel_a_rejudging_to_keep_a_score(m: Any, team: Any) -> None:
    submission = send(team, attack())
    first = submission.judgings.get()
    m.judgings.finish(start(m, first), report_of(first, 700.0), None)
    organizer = make_account(f"organizer {next(_names)}", is_staff=True)
    rejudging = m.rejudging.begin_rejudging(team.competition, organizer, engine="9.9.9")
    assert m.rejudging.rejudge(rejudging, [submission], organizer) == 1
    assert m.rejudging.rejudge(rejudging, [submission], organizer) == 0
    with pytest.raises(m.ServiceError):
        m.judgings.cancel(submission, team.memberships.get().account)
    states = [*submission.judgings.order_by("pk").values_list("state", "engine", "final_score")]
    assert states == [("scored", first.engine, 700.0), ("queued", "9.9.9", None)]


def test_uploads_at_the_same_time_share_one_quota(m: Any, competition: Any) -> None:
    team = make_team(competition, "Hasty")
    account = team.memberships.get().account
    uploads = [checked(attack()) for _ in range(8)]
    results: list[str] = []

    def upload(one: Any) -> None:
        try:
            m.submit.submit(team, account, one)
            results.append("accepted")
        except m.ServiceError as error:
            results.append(str(error.status))
        finally:
            m.connection.close()

    threads = [threading.Thread(target=upload, args=(one,)) for one in uploads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["429"] * 5 + ["accepted"] * 3
    assert m.models.Submission.objects.filter(team=team).count() == 3


def test_the_quota_says_when_the_next_submission_is_free(m: Any, team: Any) -> None:
    first = send(team, attack())
    send(team, attack())
    assert m.quota.quota_of(team).next_at is None
    send(team, attack())
    first.refresh_from_db()
    quota = m.quota.quota_of(team)
    assert (quota.left, quota.next_at) == (0, first.at + timedelta(hours=24))
    yesterday = m.heartbeat.Now() - timedelta(hours=25)
    m.models.Submission.objects.filter(pk=first.pk).update(at=yesterday)
    assert m.quota.quota_of(team).left == 1


def test_dates_are_kept_by_the_database(m: Any, competition: Any) -> None:
    from django.utils.timezone import now  # noqa: PLC0415

    team = make_team(competition, "Early")
    for fields, word in (
        ({"opens_at": now() + timedelta(hours=1)}, "opens at"),
        ({"opens_at": None, "closes_at": now() - timedelta(hours=1)}, "closed at"),
    ):
        m.models.Competition.objects.filter(pk=competition.pk).update(**fields)
        with pytest.raises(m.ServiceError, match=word):
            send(team, attack())


def test_tokens_and_invitations_are_stored_as_digests_only(m: Any, team: Any) -> None:
    account = team.memberships.get().account
    made = m.accounts.make_token(account, "ci", ("read",))
    row = m.models.ApiToken.objects.get(pk=made.id)
    assert made.secret not in str(row.__dict__)
    assert m.accounts.find_token(made.secret).account == account
    assert m.accounts.find_token(made.secret[:-1]) is None
    m.accounts.revoke_token(account, made.id)
    assert m.accounts.find_token(made.secret) is None
    invited, late = make_account(f"i{next(_names)}"), make_account(f"i{next(_names)}")
    invitation = m.teams.invite(team, account)
    assert m.teams.accept_invitation(invited, invitation.secret) == team
    with pytest.raises(m.ServiceError, match="was used"):
        m.teams.accept_invitation(late, invitation.secret)
    with pytest.raises(m.ServiceError, match="captain"):
        m.teams.invite(team, invited)


def test_team_names_differ_in_more_than_case(m: Any, competition: Any) -> None:
    make_team(competition, "Lancers")
    with pytest.raises(m.ServiceError, match="Another team"):
        m.accounts.join(make_account(f"i{next(_names)}"), competition, "LANCERS")


def test_the_migrations_describe_the_models(m: Any) -> None:
    from django.core.management import call_command  # noqa: PLC0415

    assert m.models
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
