"""Submissions in the jail, at level A: the same results as in process, and typed failures."""

import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from small_runs import small_rules
from tiltyard import SandboxEnv
from tiltyard.contracts.attack import AttackRunConfig
from tiltyard.isolation.guest import guardrail_server
from tiltyard.isolation.host import jailed_attack
from tiltyard.isolation.host.failures import FailureKind, GuestError, Phase
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.limits import JailError, Level
from tiltyard.isolation.host.session import Deadlines
from tiltyard.judge import Judge
from tiltyard.matches.defense import play_defense
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.submissions import Submission, open_submission
from tiltyard.world.generate import generate

RULES: Final = load_ruleset()
SHORT: Final = small_rules(1_500)

KEEPS_STATE: Final = """
from tiltyard import Decision

class Guardrail:
    def __init__(self):
        self.tainted = False
        self.seen = []

    def decide(self, tool_name, tool_args, context):
        self.seen.append(tool_name)
        named = any(str(value)[:12] in context.last_user for value in tool_args.values())
        if self.tainted and context.side_effect in ("SHARE", "WRITE", "EXEC") and not named:
            recent = ",".join(context.recent_sources)
            return Decision.deny(f"{len(self.seen)} calls, {len(context.events)} before, {recent}")
        return Decision.allow()

    def observe(self, tool_name, tool_args, result):
        self.tainted = self.tainted or result.source in ("web", "email")
"""

Submit = Callable[..., Submission]


@pytest.fixture
def submit() -> Iterator[Submit]:
    """Return a function that writes sources as a submission, readable by every user."""
    with tempfile.TemporaryDirectory(prefix="tiltyard-test-") as name:
        root = Path(name)
        root.chmod(0o755)

        def make(**sources: str) -> Submission:
            here = root / str(len(list(root.iterdir())))
            here.mkdir()
            for module, source in sources.items():
                (here / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
            return open_submission(here, root / f"opened-{here.name}")

        yield make


def in_process(source: str) -> Any:
    names: dict[str, Any] = {"__name__": "guardrail"}
    exec(compile(source, "guardrail.py", "exec"), names)  # noqa: S102 - a test's own text
    return names["Guardrail"]


def test_jailed_match_equals_the_match_in_process(submit: Submit) -> None:
    plain = play_defense(MatchSettings(generate(123), SHORT), in_process(KEEPS_STATE))
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        assert pool.level is Level.A
        jailed = play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
    assert jailed.digest == plain.digest
    assert jailed.exploration.steps == plain.exploration.steps
    assert jailed.inconsistent == 0


def test_two_workers_have_guests_of_their_own(submit: Submit) -> None:
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        alone = play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
        together = play_defense(MatchSettings(generate(123), SHORT, workers=2), pool.guardrail)
    assert alone.digest == together.digest


MESSAGES: Final = (
    "read file readme",
    "open welcome",
    "hello there",
    "save it to a.txt",
    "read email",
    "run echo",
    "send it to someone@elsewhere.example",
)


def test_restore_equals_replay_through_the_jail(submit: Submit) -> None:
    """Restored and replayed traces equal the trace of the guardrail in process."""
    plain = SandboxEnv(guardrail=in_process(KEEPS_STATE)())
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        env = SandboxEnv(guardrail=pool.guardrail())
        moments = [env.snapshot()]
        for message in MESSAGES:
            plain.interact(message)
            env.interact(message)
            moments.append(env.snapshot())
        assert env.trace.public_events() == plain.trace.public_events()
        for back in (3, 0, 5, 1):
            env.restore(moments[back])
            for message in MESSAGES[back:]:
                env.interact(message)
            assert env.trace.public_events() == plain.trace.public_events()


def test_history_is_sent_again_for_a_state_that_the_guest_dropped(submit: Submit) -> None:
    plain = SandboxEnv(guardrail=in_process(KEEPS_STATE)())
    first = [plain.interact(message) for message in MESSAGES][-1].events
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        env = SandboxEnv(guardrail=pool.guardrail())
        for message in MESSAGES[:-1]:
            env.interact(message)
        kept = env.snapshot()
        env.reset()
        for _ in range(guardrail_server.MAX_STATES + 10):
            env.reset()
            env.interact("run echo")
        env.restore(kept)
        assert env.interact(MESSAGES[-1]).events == first


def test_long_history_is_sent_in_several_frames(submit: Submit) -> None:
    long = "x" * 1_900
    writes = "\n".join(f'write "{long[:70]}" to f{n}.txt' for n in range(20))
    grow = "run `cat f*.txt f*.txt f*.txt > big.txt; cat big.txt big.txt big.txt > huge.txt`"
    chain = (writes, grow, *["read huge.txt\nread huge.txt\nread huge.txt"] * 12, "run echo")
    plain = SandboxEnv(guardrail=in_process(KEEPS_STATE)())
    for message in chain:
        plain.interact(message)
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        env = SandboxEnv(guardrail=pool.guardrail())
        for message in chain:
            env.interact(message)
        assert env.trace.public_events() == plain.trace.public_events()


BROKEN: Final = {
    "raises": "raise ValueError('oh dear')",
    "nonsense": "return 7",
    "exits": "raise SystemExit(3)",
    "interrupts": "raise KeyboardInterrupt",
    "closes": "raise GeneratorExit",
    "bare": "raise BaseException('bare')",
    "changes": "tool_args['x'] = 1; return Decision.allow()",
    "recursion": "return self.decide(tool_name, tool_args, context)",
}


@pytest.mark.parametrize("how", BROKEN)
def test_guardrail_that_raises_or_returns_no_decision_denies(submit: Submit, how: str) -> None:
    source = f"""
    from tiltyard import Decision
    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            {BROKEN[how]}
    """
    plain = SandboxEnv(guardrail=in_process(textwrap.dedent(source))())
    plain.interact("run echo")
    with GuestPool(submit(guardrail=source), "guardrail") as pool:
        guardrail = pool.guardrail()
        env = SandboxEnv(guardrail=guardrail)
        env.interact("run echo")
        (event,) = env.trace.public_events()
        assert event.error == "guardrail_error"
        assert event.reason == plain.trace.public_events()[0].reason
        (fault,) = guardrail.runner.take_faults()
        assert (fault.phase, fault.tool) == (Phase.DECIDE, "shell.run")
        assert fault.text in event.reason or fault.message in event.reason


FATAL: Final = {
    "dies": ("import os; os._exit(0)", "died"),
    "hangs": ("while True: pass", "deadline"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "died"),
    "memory": ("x = bytearray(10**9)", ""),
}


@pytest.mark.parametrize("how", FATAL)
def test_a_guest_that_dies_or_hangs_ends_the_match_without_a_score(
    submit: Submit, how: str
) -> None:
    code, kind = FATAL[how]
    source = f"""
    from tiltyard import Decision
    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            print("the last words")
            if tool_name == "shell.run":
                {code}
            return Decision.allow()
    """
    deadlines = Deadlines(answer=1.0)
    with GuestPool(submit(guardrail=source), "guardrail", deadlines=deadlines) as pool:
        env = SandboxEnv(guardrail=pool.guardrail())
        env.interact("read file readme")
        if not kind:  # MemoryError is an exception like any other.
            env.interact("run echo")
            assert "MemoryError" in env.trace.public_events()[-1].reason
            return
        with pytest.raises(GuestError) as caught:
            env.interact("run echo")
        failure = caught.value.failure
        assert failure.kind == kind
        assert failure.doing == "decide shell.run"
        assert "the last words" in failure.output


ENDINGS: Final = {
    "import os; os._exit(3)": "exited with code 3",
    "import os; os._exit(0)": "exited with code 0",
    "import ctypes; ctypes.string_at(0)": "was ended by SIGSEGV",
    "import os; os.close(63); [0 for _ in iter(int, 1)]": "closed its connection",
    "import sys; sys.modules['tiltyard.isolation.guest.guardrail_server'].Decided = None": (
        "exited with code 1"
    ),
}


@pytest.mark.parametrize("code", ENDINGS)
def test_a_failure_says_how_the_guest_ended(submit: Submit, code: str) -> None:
    source = f"""
    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            {code}
    """
    with (
        GuestPool(submit(guardrail=source), "guardrail") as pool,
        pytest.raises(GuestError) as caught,
    ):
        SandboxEnv(guardrail=pool.guardrail()).interact("run echo")
    told = f"the submission's process {ENDINGS[code]} before it answered"
    assert (caught.value.failure.kind, caught.value.failure.message) == (FailureKind.DIED, told)


def test_a_failure_of_an_unsafe_guest_says_how_it_ended(submit: Submit) -> None:
    source = """
    import os, signal
    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            os.kill(os.getpid(), signal.SIGABRT)
    """
    with (
        GuestPool(submit(guardrail=source), "guardrail", unsafe=True) as pool,
        pytest.raises(GuestError, match="was ended by SIGABRT"),
    ):
        SandboxEnv(guardrail=pool.guardrail()).interact("run echo")


@pytest.mark.parametrize(
    ("stage", "source", "told"),
    [
        ("import", "import nonexistent_package\nclass Guardrail: ...", "nonexistent_package"),
        ("import", "class Guardrail: ...\nraise ValueError('at import')", "at import"),
        ("class", "class Guardrail: ...\ndel Guardrail", "Guardrail"),
        ("construct", "class Guardrail:\n    def __init__(self):\n        1 / 0", "guardrail.py"),
        ("contract", "class Guardrail:\n    pass", "no `decide` method"),
    ],
)
def test_load_failure_has_a_kind_and_a_place(
    submit: Submit, stage: str, source: str, told: str
) -> None:
    with GuestPool(submit(guardrail=source), "guardrail") as pool:
        env = SandboxEnv(guardrail=pool.guardrail())
        with pytest.raises(GuestError) as caught:
            env.interact("run echo")
    failure = caught.value.failure
    assert failure.kind == stage
    assert failure.phase is Phase.LOAD
    assert told in failure.traceback + failure.message


ATTACK: Final = """
from tiltyard import AttackCandidate

class AttackAlgorithm:
    def run(self, env, config):
        assert config.max_steps == env.steps_left
        start = env.snapshot()
        found = []
        for name in env.interact("run `ls vendor`").events[0].output.split():
            env.restore(start)
            message = f"read file vendor/{name}"
            done = env.interact(message)
            assert done.events == env.trace.public_events()
            assert env.export_trace_dict()["user_messages"] == [message]
            if any(event.ok and event.name != "fs.read" for event in done.events):
                found.append(AttackCandidate((message,)))
        return found
"""


def test_jailed_attack_equals_the_attack_in_process(submit: Submit) -> None:
    names: dict[str, Any] = {}
    exec(ATTACK, names)  # noqa: S102 - a test's own text
    plain = play_offense(MatchSettings(generate(123), RULES), names["AttackAlgorithm"]())
    with GuestPool(submit(attack=ATTACK), "attack") as pool:
        jailed = play_offense(MatchSettings(generate(123), RULES), pool.attack())
    assert plain.score.raw > 0
    assert jailed.digest == plain.digest
    assert jailed.steps == plain.steps


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("raise ValueError('oh dear')", "run", "oh dear"),
        ("raise KeyboardInterrupt('oh dear')", "run", "oh dear"),
        ("raise SystemExit('oh dear')", "run", "oh dear"),
        ("import os; os._exit(1)", "died", ""),
        ("while True: pass", "deadline", ""),
        ("return None", "result", "NoneType"),
    ],
)
def test_attack_failure_has_a_kind_and_a_message(
    submit: Submit, body: str, kind: str, told: str
) -> None:
    source = f"""
    class AttackAlgorithm:
        def run(self, env, config):
            env.interact("run echo")
            {body}
    """
    env = SandboxEnv(max_steps=100)
    deadlines = Deadlines(answer=1.0)
    with (
        GuestPool(submit(attack=source), "attack", deadlines=deadlines) as pool,
        pytest.raises(GuestError) as caught,
    ):
        pool.attack().run(env, AttackRunConfig(max_steps=100))
    assert caught.value.failure.kind == kind
    assert told in str(caught.value)


def test_environment_refuses_invalid_calls_and_a_spent_budget(submit: Submit) -> None:
    source = """
    class AttackAlgorithm:
        def run(self, env, config):
            told = []
            for bad in (5, "x" * 3000, "\\ud800"):
                try:
                    env.interact(bad)
                except (TypeError, ValueError) as error:
                    told.append(str(error))
            try:
                while True:
                    env.interact("run echo")
            except RuntimeError as error:
                told.append(str(error))
            return [tuple(told), None, 7, [1, 2], "text"]
    """
    env = SandboxEnv(max_steps=5)
    with GuestPool(submit(attack=source), "attack") as pool:
        told, *others = pool.attack().run(env, AttackRunConfig(max_steps=5))
    assert env.steps_left == 0
    messages = told.user_messages
    assert "not int" in messages[0]
    assert "2000 characters" in messages[1]
    assert "no steps are left" in messages[-1]
    verdict = Judge(generate(123)).judge([told, *others])
    assert len(verdict.refused) == len(others)


CLOCK: Final = """
import datetime, os, random, secrets, time, uuid

class AttackAlgorithm:
    def run(self, env, config):
        told = [repr((time.time(), time.monotonic(), datetime.datetime.now(), random.random()))]
        told.append(repr((os.urandom(8), secrets.token_hex(4), uuid.uuid4(), hash("text"))))
        before = time.monotonic()
        while time.monotonic() - before < config.time_budget_s / 2:
            env.interact("run echo")
        told.append(repr(env.steps_left))
        now = time.monotonic()
        time.sleep(1000)
        told.append(repr(round(time.monotonic() - now)))
        return [tuple(told)]
"""


def test_clock_and_randomness_depend_on_the_match_alone(submit: Submit) -> None:
    submission = submit(attack=CLOCK)

    def run(key: str) -> tuple[str, ...]:
        env = SandboxEnv(max_steps=200)
        with GuestPool(submission, "attack", key=key) as pool:
            (told,) = pool.attack().run(env, AttackRunConfig(max_steps=200))
        messages: tuple[str, ...] = told.user_messages
        return messages

    first, again, other = run("key"), run("key"), run("another")
    assert first == again
    assert first[1] != other[1]
    assert "2026, 1, 5" in first[0]
    # Half of the time corresponds to half of the steps.
    assert 98 <= int(first[2]) <= 101
    assert first[3] == "1000"


DATES: Final = """
import copy, pickle, time
from datetime import date, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from tiltyard import SandboxEnv

class AttackAlgorithm:
    def run(self, env, config):
        inner = SandboxEnv()
        inner.interact("read file readme")
        now, parsed = datetime.now(), parsedate_to_datetime("Mon, 05 Jan 2026 10:00:00 +0000")
        told = {
            "real": isinstance(parsed, datetime) and isinstance(parsed, date),
            "own": isinstance(now, datetime) and isinstance(date.today(), date),
            "kin": issubclass(datetime, date) and not issubclass(date, datetime),
            "not": not isinstance(date.today(), datetime) and not isinstance(3, date),
            "later": isinstance(now + timedelta(1), datetime),
            "before": parsed > datetime.now(timezone.utc) - timedelta(9),
            "packed": all(pickle.loads(pickle.dumps(each)) == each for each in (now, parsed)),
            "copied": copy.deepcopy(now) == now,
            "mine": not isinstance(now, type("Mine", (datetime,), {})),
            "world": len(inner.trace.public_events()) == 1,
        }
        return [tuple(name for name, holds in told.items() if not holds) or ("fine",)]
"""


def test_replaced_dates_still_work_as_dates(submit: Submit) -> None:
    with GuestPool(submit(attack=DATES), "attack") as pool:
        (told,) = pool.attack().run(SandboxEnv(max_steps=9), AttackRunConfig(max_steps=9))
    assert told.user_messages == ("fine",)


def test_closed_pool_leaves_no_process(submit: Submit) -> None:
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        sessions = [pool.open() for _ in range(3)]
        pids = [session.guest.pid for session in sessions]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_unsafe_pool_gives_the_same_result_at_level_c(submit: Submit) -> None:
    plain = play_defense(MatchSettings(generate(123), SHORT), in_process(KEEPS_STATE))
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail", unsafe=True) as pool:
        assert pool.unsafe
        assert pool.level is Level.C
        match = play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
    assert match.digest == plain.digest


def test_level_c_refuses_to_start_a_guest(submit: Submit) -> None:
    pool = GuestPool(submit(guardrail=KEEPS_STATE), "guardrail", level=Level.C)
    with pytest.raises(JailError, match="in a jail or not at all"):
        pool.open()


def test_attack_with_changing_results_is_marked_inconsistent() -> None:
    class Counts:
        runs = 0

        def run(self, env: Any, config: AttackRunConfig) -> list[tuple[str, ...]]:
            del env, config
            self.runs += 1
            return [("run echo",)] * self.runs

    attack: Any = Counts()
    assert (
        play_offense(MatchSettings(generate(123), RULES, attack_runs=2), attack).inconsistent == 1
    )
    assert play_offense(MatchSettings(generate(123), RULES), attack).inconsistent == 0


def test_judge_gets_its_cores_back(submit: Submit) -> None:
    before = os.sched_getaffinity(0)
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        pool.open()
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("body", ["env.reset()", "env.snapshot()"])
def test_calls_that_cost_no_step_are_bounded(submit: Submit, body: str) -> None:
    source = f"""
    class AttackAlgorithm:
        def run(self, env, config):
            while True:
                {body}
    """
    deadlines = Deadlines(whole=1.0)
    with (
        GuestPool(submit(attack=source), "attack", deadlines=deadlines) as pool,
        pytest.raises(GuestError) as caught,
    ):
        pool.attack().run(SandboxEnv(max_steps=5), AttackRunConfig(max_steps=5))
    assert caught.value.failure.kind in (FailureKind.DEADLINE, FailureKind.RUN)


TOO_LARGE = ": reset, or restore a snapshot"
HOARDS = """
class AttackAlgorithm:
    def run(self, env, config):
        large = "run `echo -n " + "x" * 1000 + " > a; cat a a a a a a a a > b; cat b b b b > c`"
        start = env.snapshot()
        try:
            for number in range(9):
                env.restore(start)
                env.interact(large.replace("x", str(number)))
                {keep}
        except ValueError as error:
            said = str(error)
        else:
            said = "no limit"
        env.restore(start)
        return [(said, env.interact("run echo").answer)]
"""


@pytest.mark.parametrize(
    ("keep", "said"),
    [("env.snapshot()", TOO_LARGE), ("start = env.snapshot()", TOO_LARGE), ("", "no limit")],
)
def test_what_an_attack_keeps_has_a_limit(
    submit: Submit, monkeypatch: pytest.MonkeyPatch, keep: str, said: str
) -> None:
    """Nine episodes of 40 kB each exceed a limit of 200 kB only if snapshots keep them."""
    monkeypatch.setattr(jailed_attack, "MAX_KEPT_BYTES", 200_000)
    with GuestPool(submit(attack=HOARDS.format(keep=keep)), "attack") as pool:
        [candidate] = pool.attack().run(SandboxEnv(max_steps=99), AttackRunConfig(max_steps=99))
    assert candidate.user_messages[0].endswith(said)


def test_an_episode_without_an_end_has_a_limit(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jailed_attack, "MAX_KEPT_BYTES", 200_000)
    source = HOARDS.replace("env.restore(start)\n                env.int", "env.int")
    with GuestPool(submit(attack=source.format(keep="")), "attack") as pool:
        [candidate] = pool.attack().run(SandboxEnv(max_steps=99), AttackRunConfig(max_steps=99))
    assert candidate.user_messages[0].endswith(TOO_LARGE)


MOVES = """
class AttackAlgorithm:
    def run(self, env, config):
        start = env.snapshot()
        env.interact("run echo one")
        kept = [env.snapshot() for _ in range(150)]
        env.interact("run echo lost")
        for each in (start, *kept):
            env.reset()
            env.restore(each)
        env.interact("run echo two")
        said = tuple(env.trace.user_messages)
        env.reset()
        env.restore(start)
        env.interact("run echo three")
        env.restore(kept[-1])
        env.interact("run echo four")
        return [said, tuple(env.trace.user_messages)]
"""


def test_moves_between_messages_reach_the_environment_in_order(submit: Submit) -> None:
    """Moves travel with the next message. A frame has room for 64, so some of these go before."""
    env = SandboxEnv(max_steps=99)
    with GuestPool(submit(attack=MOVES), "attack") as pool:
        found = pool.attack().run(env, AttackRunConfig(max_steps=99))
    first, last = (each.user_messages for each in found)
    assert first == ("run echo one", "run echo two")
    assert last == ("run echo one", "run echo four")
    assert tuple(env.trace.user_messages) == last
    assert env.steps_spent == 5


def test_forged_failure_is_a_protocol_failure(submit: Submit) -> None:
    source = """
    import gc
    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            from tiltyard.isolation.wire.channel import Channel
            from tiltyard.isolation.wire.frames import Failed
            for each in gc.get_objects():
                if isinstance(each, Channel):
                    each.send(Failed("canary=ABCDEF12345", "ValueError: seen", "ValueError"))
    """
    with GuestPool(submit(guardrail=source), "guardrail") as pool:
        env = SandboxEnv(guardrail=pool.guardrail())
        with pytest.raises(GuestError) as caught:
            env.interact("run echo")
    assert caught.value.failure.kind is FailureKind.PROTOCOL


def test_oversized_candidates_are_cut(submit: Submit) -> None:
    source = """
    class AttackAlgorithm:
        def run(self, env, config):
            return [("x",) * 5_000] * 30 + [("y" * 9_000,)] + ["word" * 100] + [("run echo",)]
    """
    with GuestPool(submit(attack=source), "attack") as pool:
        found = pool.attack().run(SandboxEnv(max_steps=5), AttackRunConfig(max_steps=5))
    assert len(found) == 33
    assert all(len(each) <= 64 for each in found[:30])
    verdict = Judge(generate(123)).judge(found)
    assert [refused.index for refused in verdict.refused] == list(range(32))


@pytest.mark.parametrize("workers", [1, 2])
def test_guardrail_that_counts_calls_is_marked_inconsistent(submit: Submit, workers: int) -> None:
    source = """
    from tiltyard import Decision
    asked = 0
    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            global asked
            asked += 1
            return Decision.deny("a search") if asked > 40 else Decision.allow()
    """
    with GuestPool(submit(guardrail=source), "guardrail") as pool:
        match = play_defense(MatchSettings(generate(123), SHORT, workers=workers), pool.guardrail)
    assert match.inconsistent > 0
