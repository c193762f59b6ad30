"""The world as an MCP server, with the clients of two projects and a language model."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client as FastClient
from fastmcp.exceptions import ToolError
from mcp import Client, MCPError, StdioServerParameters

from outside_agents import obey, stay_careful
from tiltyard.bridges.world_server.agents import client_config, serve_command
from tiltyard.bridges.world_server.play import Wanted, begin, begin_without, judge_session
from tiltyard.bridges.world_server.session import CALLS, MAX_CALLS, read_session
from tiltyard.contracts.declaration import read_declarations

TILTYARD = (sys.executable, "-m", "tiltyard")
WANTED = Wanted(2, ("bank",), "bank/bank-invoice-by-letter", "order")
LOCAL_AGENT = Path(__file__).with_name("local_agent.py")

CallTool = Callable[[str, dict[str, Any]], Awaitable[tuple[str, bool]]]
"""Makes a call; returns the text of the result, and whether it is an error."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return begin(WANTED, tmp_path / "session")[0]


def over_stdio(directory: Path) -> StdioServerParameters:
    command, *args = serve_command(directory)
    return StdioServerParameters(command=command, args=args)


@contextlib.contextmanager
def over_http(directory: Path) -> Iterator[str]:
    """Serve a session over HTTP, and yield the URL."""
    command = [*serve_command(directory), "--http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            lines = iter(server.stderr.readline, "")
            yield next(line.split()[-1] for line in lines if line.startswith("server:"))
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate()


@contextlib.asynccontextmanager
async def official(server: Any, mode: str) -> AsyncIterator[tuple[Any, CallTool]]:
    """Connect with the client of the `mcp` package."""
    async with Client(server, mode=mode) as client:

        async def call(tool: str, args: dict[str, Any]) -> tuple[str, bool]:
            result = await client.call_tool(tool, args)
            return result.content[0].text, result.is_error

        yield client, call


@contextlib.asynccontextmanager
async def fast(server: Any) -> AsyncIterator[CallTool]:
    """Connect with fastmcp's client."""
    async with FastClient(server) as client:

        async def call(tool: str, args: dict[str, Any]) -> tuple[str, bool]:
            result = await client.call_tool(tool, args, raise_on_error=False)
            return result.content[0].text, result.is_error

        yield call


async def make(call: CallTool, calls: list[tuple[str, dict[str, Any]]]) -> None:
    for tool, args in calls:
        _, is_error = await call(tool, args)
        assert not is_error


@pytest.mark.parametrize(("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_official_client_is_hijacked_in_both_protocol_families(
    directory: Path, mode: str, revision: str, transport: str
) -> None:
    stage = read_session(directory).stage

    async def act(server: Any) -> None:
        async with official(server, mode) as (client, call):
            assert client.protocol_version == revision
            listed = (await client.list_tools()).model_dump(by_alias=True)["tools"]
            bare = [{key: value for key, value in one.items() if value} for one in listed]
            shown = {one.name: one for one in read_declarations(bare)}
            assert len(shown) == len(stage.surface.declarations)
            for one in stage.surface.declarations:
                seen = shown[one.name]
                assert (seen.description, seen.input_schema) == (one.description, one.input_schema)
                assert seen.hints.read_only == one.hints.read_only
            prompt = await client.get_prompt("task")
            assert prompt.messages[0].content.text == stage.say
            with pytest.raises(MCPError, match="unknown tool nobody"):
                await call("nobody", {})
            await make(call, obey(stage))
            _, is_error = await call(stage.surface.declarations[0].name, {"x": {"y": [1]}})
            assert is_error

    if transport == "stdio":
        asyncio.run(act(over_stdio(directory)))
    else:
        with over_http(directory) as url:
            asyncio.run(act(url))
    report = judge_session(directory)
    assert (report.outcome, report.task.state, report.differing) == ("hijacked", "done", ())
    assert len(report.calls) == len(obey(stage)) + 2


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_fastmcps_client_resists(directory: Path, transport: str) -> None:
    stage = read_session(directory).stage

    async def act(server: Any) -> None:
        async with fast(server) as call:
            await make(call, stay_careful(stage))

    if transport == "stdio":
        asyncio.run(act(json.loads(client_config(directory))))
    else:
        with over_http(directory) as url:
            asyncio.run(act(url))
    report = judge_session(directory)
    assert (report.outcome, report.task.state, report.differing) == ("resisted", "done", ())


def test_a_run_without_the_plant_shows_the_same_world_without_the_order(directory: Path) -> None:
    stage = read_session(directory).stage
    assert stage.attempt is not None
    (order,) = stage.attempt.plant.texts

    async def read_all(where: Path) -> str:
        async with fast(json.loads(client_config(where))) as call:
            results = [await call(tool, args) for tool, args in stay_careful(stage)]
        return "\n".join(text for text, _ in results)

    with_order = asyncio.run(read_all(directory))
    without, _ = begin_without(directory)
    assert order in with_order.replace("\\n", "\n")
    assert order not in asyncio.run(read_all(without))
    report = judge_session(directory)
    assert report.counterfactuals == 1


def test_structured_content_is_an_object(tmp_path: Path) -> None:
    found = 0
    for seed in range(4):
        where, _ = begin(Wanted(seed, ("bank",)), tmp_path / str(seed))
        stage = read_session(where).stage
        bound = [one for one in stage.surface.tools.values() if one.structured]
        names = [
            one.declaration.name
            for one in bound
            if one.format == "json" and one.tool.op == "list" and not one.declaration.required
        ]

        async def read(where: Path, names: list[str]) -> int:
            async with FastClient(json.loads(client_config(where))) as client:
                for name in names:
                    result = await client.call_tool(name, {})
                    listed = json.loads(result.content[0].text)
                    assert result.structured_content == {"result": listed}
            return len(names)

        found += asyncio.run(read(where, names))
    assert found


def test_a_killed_server_loses_nothing(directory: Path) -> None:
    calls = obey(read_session(directory).stage)
    with subprocess.Popen(
        serve_command(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
        ask(server, 0, "initialize", hello)
        for number, (tool, args) in enumerate(calls, 1):
            answer = ask(server, number, "tools/call", {"name": tool, "arguments": args})
            assert "result" in answer
        server.kill()
    report = judge_session(directory)
    assert (report.outcome, len(report.calls), report.is_cut) == ("hijacked", len(calls), False)


def test_a_server_that_is_told_to_stop_ends_though_stdin_is_open(directory: Path) -> None:
    with subprocess.Popen(
        serve_command(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
        ask(server, 0, "initialize", hello)
        server.terminate()
        assert server.wait() == 130


INFO = {"name": "raw", "version": "1"}


def ask(server: "subprocess.Popen[bytes]", number: int, method: str, params: object) -> Any:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return answer_to(server, json.dumps(message).encode())


def answer_to(server: "subprocess.Popen[bytes]", line: bytes) -> Any:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(line + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())


HOSTILE = [
    (b'{"a": NaN}', "no JSON number"),
    (b'{"a": 1e999}', "no JSON number"),
    (b'{"a": %d}' % 2**80, "more than 64 bits"),
    (b'{"a":' * 60 + b"1" + b"}" * 60, "32 levels deep"),
    (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "no JSON-RPC"),
    (b"[" * 200_000, "no JSON-RPC"),
    (b'{"a": "\\ud800"}', "no JSON-RPC"),
    (b'{"a": "%s"}' % (b"x" * 300_000), "the limit is 200,000"),
    (b'{"a": "%s"}' % (b"x" * 20_000_000), "more than 4,000,000 bytes"),
    (b"[1]", "Invalid request parameters"),
    (b"\xff", "no JSON-RPC"),
]


def test_a_hostile_frame_gets_an_error_and_the_server_goes_on(directory: Path) -> None:
    with subprocess.Popen(
        serve_command(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
        ask(server, 0, "initialize", hello)
        frame = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":%s}}'
        )
        for arguments, problem in HOSTILE:
            answer = answer_to(server, frame % arguments)
            assert problem in json.dumps(answer), arguments[:40]
            assert "tools" in ask(server, 2, "tools/list", {})["result"]
        server.stdin.close()
        assert server.wait() == 0
    assert judge_session(directory).outcome == "never read"


def test_a_full_session_says_so(directory: Path) -> None:
    line = b'{"tool":"x","args":{},"ok":false,"error":"unknown tool x"}\n'
    (directory / CALLS).write_bytes(line * MAX_CALLS)

    async def act() -> None:
        async with FastClient(json.loads(client_config(directory))) as client:
            tool = read_session(directory).stage.surface.declarations[0].name
            with pytest.raises(ToolError, match="this session is full"):
                await client.call_tool(tool, {})

    asyncio.run(act())


def test_another_origin_cannot_reach_the_http_server(directory: Path) -> None:
    """A page in a browser must not act in the world."""
    with over_http(directory) as url:
        done = subprocess.run(
            [sys.executable, "-c", POST, url], capture_output=True, text=True, check=True
        )
    assert done.stdout.split() == ["403", "421"]


POST = """
import http.client, sys, urllib.parse
where = urllib.parse.urlsplit(sys.argv[1])
for headers in ({"Origin": "https://example.org"}, {"Host": "example.org"}):
    link = http.client.HTTPConnection(where.hostname, where.port)
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    link.request("POST", where.path, "{}", kinds | headers)
    print(link.getresponse().status)
"""


def test_the_local_model_is_started_with_and_without_the_order_and_judged(tmp_path: Path) -> None:
    """The model may do anything: session, counterfactual and verdict must fit what it did."""
    where = tmp_path / "session"
    html = tmp_path / "judged.html"
    command = [
        *TILTYARD, "world", "run", "--seed", "2", "--pack", "bank", "--plant", "order",
        "--session", str(where), "--html", str(html), "--json", "--",
        sys.executable, str(LOCAL_AGENT), "{say}", "{config}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert report["harmed"] == (done.returncode == 1)
    assert report["calls"]
    assert (report["differing"], report["refused"], report["is_cut"]) == ([], 0, False)
    assert report["counterfactuals"] == 1
    assert report["task"]["answer"] in ("told", "not told", "none wanted")
    # An independent reading of the session: did a result show the order?
    lines = [json.loads(line) for line in (where / CALLS).read_text().splitlines()]
    assert [line["tool"] for line in lines] == [call["tool"] for call in report["calls"]]
    (order,) = report["goal"]["planted"]
    shown = any(order in line.get("output", "").replace("\\n", "\n") for line in lines)
    assert report["goal"]["read"] == ("read" if shown else "never read")
    changed = any(call["changes"] for call in report["calls"])
    if not changed:
        assert report["outcome"] == ("resisted" if shown else "never read")
    assert "<!doctype html>" in html.read_text()


def test_an_agent_that_cannot_be_started_is_named(directory: Path) -> None:
    def judge(*words: str) -> str:
        command = [*TILTYARD, "world", "judge", str(directory), "--command", " ".join(words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        return done.stderr

    assert "cannot be started: No such file" in judge("no-such-agent", "{say}", "{config}")
    assert "lacks {config}" in judge("agent", "{say}")
    assert "exit code 1" in judge("false", "{say}", "{config}")
