"""`tiltyard serve`, `submit` and `status`, as an organizer and a competitor run them."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from small_servers import ATTACK, ROOT, wait_until
from tiltyard.cli.app import app
from tiltyard.service.client import Client, ServerError

TIMEOUT = 240.0


def tiltyard(*words: str, **variables: str) -> Result:
    """Run a command in this process, which has imported everything already."""
    return CliRunner().invoke(app, words, env=variables)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=5) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_season_served_from_a_clone_takes_and_scores_a_submission(tmp_path: Path) -> None:
    """One command serves a season. A competitor sends an attack, and its score appears."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    place = tmp_path / "server"
    command = [sys.executable, "-m", "tiltyard", "serve", "--demo", "--port", str(port)]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--directory", str(place)], cwd=ROOT, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: answers(address) and "is ready" in log.read_text(), TIMEOUT)
        said = log.read_text()
        assert re.search(
            rf"Log in at {address}/login as organizer with the password \S{{12,}}", said
        )
        board = Client(address).board("season")
        assert [(row.rank, row.team, row.final) for row in board.rows][:2] == [
            (1, "champions", 2_000.0),
            (2, "lancers", pytest.approx(1_454.545, abs=0.01)),
        ]
        assert "Entered under two names." in board.disqualified.values()
        token = _token(place, "alice")
        path = tmp_path / "attack.py"
        path.write_text(ATTACK.format(word="hello"), encoding="utf-8")
        with_token = {"TILTYARD_TOKEN": token, "TILTYARD_SERVER": address}
        nothing = tiltyard("status", **with_token)
        assert "Nothing yet" in nothing.stdout
        sent = tiltyard("submit", str(path), "--wait", **with_token)
        assert (sent.exit_code, "4 of 5 submissions left" in sent.stdout) == (0, True), sent.output
        assert "scored" in sent.stdout
        again = tiltyard("submit", str(path), **with_token)
        assert "already there" in again.stdout
        listed = tiltyard("status", **with_token).stdout
        assert "team alice: 4 of 5 submissions left" in listed
        assert "scored" in listed
        assert "alice" in {row.team for row in Client(address).board("season").rows}
        bad = tmp_path / "bad.py"
        bad.write_text("x = 1\n", encoding="utf-8")
        refused = tiltyard("submit", str(bad), **with_token)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr == tiltyard("evaluate", str(bad)).stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM), log.read_text()
    assert "Traceback" not in log.read_text()


def _run_in(place: Path, source: str) -> str:
    """Run Python with the server's database, as an organizer's script would."""
    head = (
        "from pathlib import Path\n"
        "from tiltyard.service.environment import enter, keep_secret\n"
        f"place = Path({str(place)!r})\n"
        "enter(f'sqlite:///{place}/tiltyard.sqlite3', keep_secret(place))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + source],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT,
    )
    return done.stdout.strip()


def _token(place: Path, name: str) -> str:
    return _run_in(
        place,
        "from tiltyard.service.models import Account\n"
        "from tiltyard.service.actions.accounts import make_token\n"
        f"account = Account.objects.create(username={name!r})\n"
        "print(make_token(account, 'tests').secret)\n",
    )


@pytest.mark.parametrize("server", ["ftp://x", "nonsense", "http://"])
def test_a_server_has_an_address(server: str) -> None:
    with pytest.raises(ServerError, match="not the address of a server"):
        Client(server)


def test_a_server_that_is_away_is_named() -> None:
    with pytest.raises(ServerError, match="cannot be reached"):
        Client("http://127.0.0.1:9").me()


def test_the_client_needs_nothing_of_the_extra() -> None:
    source = (
        "import sys\n"
        "for name in ('django', 'dbos', 'uvicorn', 'jinja2', 'a2wsgi', 'psycopg', 'axes'):\n"
        "    sys.modules[name] = None\n"
        "import tiltyard.service.client, tiltyard.cli.app\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=TIMEOUT)


def test_serve_without_the_extra_says_what_to_install(tmp_path: Path) -> None:
    source = (
        "import sys\n"
        "sys.modules['django'] = None\n"
        f"sys.argv = ['tiltyard', 'serve', '--directory', {str(tmp_path)!r}]\n"
        "from tiltyard.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    assert done.returncode == 2
    assert "pip install 'tiltyard[server]'" in done.stderr


def _refusal(place: Path, *words: str) -> str:
    """Run a command in a process and a directory of its own; it must refuse in one line."""
    done = subprocess.run(
        [sys.executable, "-m", "tiltyard", *words],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_database_that_cannot_be_reached_is_named_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"postgresql://nobody@127.0.0.1:{free.getsockname()[1]}/x"
    for command in ("serve", "worker"):
        assert "the database cannot be reached" in _refusal(tmp_path, command, "--database", url)


def test_a_port_in_use_is_named_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = _refusal(tmp_path, "serve", "--port", str(taken.getsockname()[1]))
    assert "choose another with --port" in said


def test_an_export_without_a_server_says_how_to_begin(tmp_path: Path) -> None:
    said = _refusal(tmp_path, "export", "season", "files")
    assert "`tiltyard serve` makes its tables" in said
