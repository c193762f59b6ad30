"""`tiltyard pack`: a new pack passes, and every mistake is named with its place."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]
Refusal = Callable[..., str]


@pytest.fixture
def library(tiltyard: Command, tmp_path: Path) -> Path:
    done = tiltyard("pack", "new", "packs/my-library")
    assert done.exit_code == 0, done.output
    return tmp_path / "packs" / "my-library"


def change(file: Path, old: str, new: str) -> int:
    """Change a file, and return the number of the changed line."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


def test_a_new_pack_passes(tiltyard: Command, library: Path) -> None:
    done = tiltyard("pack", "check", library)
    assert (done.exit_code, done.stdout) == (0, f"{library}: no problems\n")
    (library / "tasks.toml").unlink()
    done = tiltyard("pack", "check", library)
    assert done.exit_code == 0
    told = f"{library}: no problems, but no tasks either: the arena plays nothing of it"
    assert " ".join(done.stdout.split()) == told


def test_a_new_pack_needs_a_new_directory_and_a_name(refusal: Refusal, library: Path) -> None:
    assert refusal("pack", "new", library) == f"{library} is not empty; name a new directory"
    assert "is not a name for a pack" in refusal("pack", "new", "packs/Große")


def test_all_mistakes_of_the_format_are_listed_with_lines(tiltyard: Command, library: Path) -> None:
    pack, tasks = library / "pack.toml", library / "tasks.toml"
    kind = change(pack, '{ is = "date", ', '{ is = "datee", ')
    op = change(pack, 'op = "delete"', 'op = "destroy"')
    say = change(tasks, 'say = "Look through', 'sayy = "Look through')
    change(pack, 'witness = "leak"', 'witness = "leek"')
    done = tiltyard("pack", "check", library)
    assert done.exit_code == 2
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        f"{pack}:{kind}: records.loan.fields.due.is: Invalid enum value 'datee'; use one of account"
    )
    assert lines[1].startswith(f"{pack}:{op}: tools.return_book.op: Invalid enum value 'destroy'")
    assert "Invalid enum value 'leek'; use one of destination, target, value, leak" in lines[2]
    assert "tasks.my-library-say-thanks: Object" in lines[3]
    # A field with a wrong name has a line of its own.
    assert lines[3].startswith(f"{tasks}:{say}: ")
    assert lines[-1] == "4 problems"


def test_a_reference_to_nothing_is_found(tiltyard: Command, library: Path) -> None:
    line = change(library / "tasks.toml", "@loans.id", "@laons.id")
    done = tiltyard("pack", "check", library)
    assert done.exit_code == 2
    assert "no earlier step is called laons" in done.stdout
    # The plan begins three lines above the step.
    place = f"{library / 'tasks.toml'}:{line - 3}: tasks.my-library-renew-by-title.plan[2]: "
    assert done.stdout.startswith(place)


def test_values_and_records_that_do_not_exist_are_found(tiltyard: Command, library: Path) -> None:
    pack, tasks = library / "pack.toml", library / "tasks.toml"
    day = change(tasks, 'day = "date"', 'day = "dates"')
    friend = change(tasks, "person:new", "person:owner")
    part = change(tasks, "name:new", "person:new")
    loan = change(tasks, 'pick = { loan = { record = "loan"', 'pick = { loan = { record = "lone"')
    spy = change(pack, 'spy = "address:new"', 'spy = "address:nobody"')
    change(tasks, 'do = "renew_loan"', 'do = "renew"')
    done = tiltyard("pack", "check", library)
    assert done.exit_code == 2
    lines = done.stdout.splitlines()
    for file, line, problem in (
        (tasks, day, "draw.day: cannot draw 'dates'; use one of person, company, account"),
        (tasks, friend, "draw.friend: nobody is 'owner'; use one of colleague, contact"),
        (tasks, part, "given.note.parts.title: cannot draw 'person'; use one of account"),
        (tasks, loan, "pick.loan: there is no record lone; use one of message, loan, request"),
        (pack, spy, "draw.spy: nobody is 'nobody'; use one of owner, colleague"),
    ):
        (found,) = [one for one in lines if problem in one]
        assert found.startswith(f"{file}:{line}: ")
    assert "there is no tool renew; use one of list_messages, list_loans, renew_loan" in done.stdout
    change(tasks, 'record = "message"', 'record = "mesage"')
    assert "given.note: there is no record mesage; use" in tiltyard("pack", "check", library).stdout


def test_a_task_that_fails_when_it_is_played_is_found(tiltyard: Command, library: Path) -> None:
    change(library / "tasks.toml", "was called {title}", "had a name")
    done = tiltyard("pack", "check", library)
    assert done.exit_code == 2
    assert "tasks.my-library-answer-reader (world" in done.stdout
    assert "a reference of step 1 finds nothing: @inbox.title" in done.stdout


@pytest.mark.parametrize(
    ("mistake", "problem"),
    [
        (("tasks", 'day = "date"', 'day = "someday"'), "cannot draw 'someday'"),
        (("tasks", '"person:new"', '"person:nobody"'), "nobody is 'nobody'"),
        (("tasks", 'record = "message"', 'record = "letter"'), "there is no record letter"),
        (("tasks", 'subject = "Which', 'topic = "Which'), "message has no field topic"),
        (("tasks", 'due = "{day}"', "due = nan"), "fails: not asked: the arguments"),
        (("pack", '"due_date", "return_by"] }', '"x"] }\nx = { is = "date" }'), "every name of x"),
        (("pack", '{ is = "date",', '{ is = "count", high = 2_000_000_000,'), "low <= high"),
        (("pack", 'op = "send"', 'op = "send"\nawaits = "message"'), "`awaits` needs a field"),
    ],
)
def test_what_a_world_cannot_make_is_found(
    tiltyard: Command, library: Path, mistake: tuple[str, str, str], problem: str
) -> None:
    file, old, new = mistake
    change(library / f"{file}.toml", old, new)
    done = tiltyard("pack", "check", library)
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)
    assert problem in done.stdout


def test_texts_inside_texts_stay_small(tiltyard: Command, library: Path) -> None:
    levels = "".join(
        f'level{n} = {{ is = "text", values = ["{f"{{level{n + 1}}}" * 200}"] }}\n'
        for n in range(1, 8)
    )
    change(library / "pack.toml", "due = { is", f"{levels}due = {{ is")
    assert tiltyard("pack", "check", library).exit_code == 0


def test_a_line_that_is_not_toml_is_found(tiltyard: Command, library: Path) -> None:
    line = change(library / "tasks.toml", 'draw = { day = "date" }', 'draw = { day = "date"')
    done = tiltyard("pack", "check", library)
    assert done.exit_code == 2
    assert done.stdout.startswith(f"{library / 'tasks.toml'}:{line}: not valid TOML: ")


def test_a_control_character_is_found_with_its_line(tiltyard: Command, library: Path) -> None:
    path = library / "pack.toml"
    text = path.read_text(encoding="utf-8").replace('about = ["', 'about = ["\\u001b[2J', 1)
    path.write_text(text, encoding="utf-8")
    line = text[: text.index("u001b")].count("\n") + 1
    done = tiltyard("pack", "check", library)
    assert f"{path}:{line}: " in done.stdout.replace("\n", "")
    assert "U+001B" in done.stdout
    assert done.exit_code == 2


def test_hostile_files_end_in_a_sentence(tiltyard: Command, tmp_path: Path) -> None:
    place = tmp_path / "odd"
    place.mkdir()
    for text in (b"a = " + b"[" * 100_000, b"\xff\xfe", b"x = 1\n" * 200_000, b"name = 3"):
        (place / "pack.toml").write_bytes(text)
        done = tiltyard("pack", "check", place)
        assert done.exit_code == 2, text[:20]
        assert done.exception is None or isinstance(done.exception, SystemExit)
    missing = tiltyard("pack", "check", tmp_path / "missing")
    assert "no such file; `tiltyard pack new" in missing.stderr
    assert "the shipped packs are bank, calendar" in missing.stderr


def test_a_file_that_is_not_text_is_named(refusal: Refusal, library: Path) -> None:
    tasks = library / "tasks.toml"
    tasks.write_bytes(b"\xff")
    told = refusal("pack", "check", library)
    assert told == f"{tasks}: not UTF-8 text; save the file as UTF-8"


def test_show_lists_packs_and_prints_one(tiltyard: Command) -> None:
    listed = tiltyard("pack", "show").stdout
    assert "7 shipped packs" in listed
    shown = tiltyard("pack", "show", "calendar").stdout
    for word in ("Records", "Tools", "Goals", "Tasks", "move_event", "invitation"):
        assert word in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if line[:1] in "┃│")


def test_seal_writes_tasks_of_a_key_for_every_pack(tiltyard: Command, tmp_path: Path) -> None:
    assert tiltyard("key", "own.key").exit_code == 0
    done = tiltyard("pack", "seal", "sealed", "--key", "own.key", "--tasks", "1")
    assert done.exit_code == 0, done.output
    assert "written: sealed, 7 tasks, fingerprint " in done.stdout
    assert "at least 100 tasks" in done.stdout
    assert len([*(tmp_path / "sealed").glob("*/tasks.toml")]) == 7
    assert tiltyard("pack", "check", "sealed/bank").stdout == "sealed/bank: no problems\n"
    assert tiltyard("pack", "check", "sealed").stdout.startswith("sealed: no problems, fingerprint")
    assert "bank: Accounts, payments" in tiltyard("pack", "show", "sealed/bank").stdout
    again = tiltyard("pack", "seal", "sealed", "--key", "own.key")
    assert again.exit_code == 2
    assert "is not empty" in again.stderr


OWN_TASK = """[tasks.bank-stop-one]
say = "Stop the standing order {order.id}."
pick = { order = { record = "standing_orders" } }
plan = [{ do = "cancel_standing_order", with = { id = "{order.id}" } }]
"""


BROKEN_TASK = """[tasks.bank-stop-one]
say = "Stop the standing order so-1."
plan = [{ do = "cancel_standing_order", with = { id = "so-1" } }]
"""


def test_mistakes_in_sealed_tasks_are_found_before_a_match(
    tiltyard: Command, refusal: Refusal, tmp_path: Path
) -> None:
    place = tmp_path / "sealed" / "bank"
    place.mkdir(parents=True)
    (place / "tasks.toml").write_text(OWN_TASK, encoding="utf-8")
    problem = "tasks.bank-stop-one.pick.order: there is no record standing_orders; use one of"
    done = tiltyard("pack", "check", "sealed/bank")
    assert done.exit_code == 2
    assert done.stdout.startswith(f"sealed/bank/tasks.toml:3: {problem}")
    assert tiltyard("init", "mine", "--track", "defense").exit_code == 0
    assert tiltyard("key", "own.key").exit_code == 0
    run = ("evaluate", "mine", "--ruleset", "arena", "--key", "own.key", "--sealed", "sealed")
    told = refusal(*run)
    assert told.startswith(f"sealed/bank: {problem}")
    assert told.endswith("`tiltyard pack check sealed/bank` names all problems.")
    whole = tiltyard("pack", "check", "sealed")
    assert whole.exit_code == 2
    assert whole.stdout.startswith(f"sealed/bank: {problem}")
    (place / "tasks.toml").write_text(BROKEN_TASK, encoding="utf-8")
    assert refusal(*run).startswith("sealed/bank: tasks.bank-stop-one (world 'check 1'): ")
    (place / "tasks.toml").write_bytes(b"\xff")
    assert refusal(*run) == "sealed/bank/tasks.toml: not UTF-8 text; save the file as UTF-8"
