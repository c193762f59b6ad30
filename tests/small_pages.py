"""Pages of the server in tests: a signed-in client, and judgings with scores."""

from datetime import timedelta
from itertools import count
from typing import Any

from small_servers import ATTACK, ROOT, make_account, make_team, send

_words = count()


def browser(account: Any = None) -> Any:
    """Return a client of Django, signed in if there is an account."""
    from django.test import Client  # noqa: PLC0415 - after Django is ready

    client = Client(headers={"host": "127.0.0.1"})
    if account is not None:
        client.force_login(account, "django.contrib.auth.backends.ModelBackend")
    return client


def captain_of(team: Any) -> Any:
    return team.memberships.get(captain=True).account


def organizer() -> Any:
    return make_account(f"organizer {next(_words)}", is_staff=True)


def text(client: Any, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, (path, answer.status_code)
    return str(answer.content.decode())


def score(judging: Any, final: float, *, hours: float = -2.0, **figures: Any) -> Any:
    """Give a judging a score that it reached some hours from now."""
    from django.utils.timezone import now  # noqa: PLC0415

    from tiltyard.service.models import Judging  # noqa: PLC0415

    fields = {"offense": final, "raw": final, "results": f"{final}", **figures}
    Judging.objects.filter(pk=judging.pk).update(
        state="scored",
        final_score=final,
        started_at=now() + timedelta(hours=hours, minutes=-7),
        finished_at=now() + timedelta(hours=hours),
        **fields,
    )
    judging.refresh_from_db()
    return judging


def enter(competition: Any, name: str, final: float, *, hours: float = -2.0, **figures: Any) -> Any:
    """Submit something for a team of this name, and return its judging with a score."""
    team = competition.teams.filter(name=name).first() or make_team(competition, name)
    source = ATTACK.format(word=f"entry {next(_words)}")
    return score(send(team, source).judgings.get(), final, hours=hours, **figures)


def real_report() -> Any:
    """Return a report on the public seed, with findings and replays."""
    from tiltyard.runs.store import load_report  # noqa: PLC0415

    return load_report(ROOT / "tests/reporting/real.json")


def give_report(judging: Any, report: Any) -> Any:
    from django.utils.timezone import now  # noqa: PLC0415

    from tiltyard.service.actions.judgings import store_report  # noqa: PLC0415

    store_report(judging, report, None)
    judging.state, judging.finished_at, judging.objections = "scored", now(), []
    judging.save()
    return judging
