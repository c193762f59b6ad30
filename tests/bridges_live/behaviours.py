"""What a real MCP client can see of a server, as named observations.

`behaviours.py KIND MODE COMMAND...` prints them as JSON. KIND chooses the server's features. MODE
is a protocol family of the `mcp` client: `legacy`, or `auto` for 2026-07-28.
"""

import json
import re
import sys
import warnings
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

Observe = Callable[["Watcher"], Awaitable[Any]]
BEHAVIOURS: Final[dict[str, dict[str, Observe]]] = {"python": {}, "everything": {}, "files": {}}
_WAIT_SECONDS: Final = 20.0
_CHANGING: Final = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z?|\d\d?:\d\d:\d\d [AP]M|[0-9a-f]{8}-[0-9a-f-]{27}"
)


class Watcher:
    """A client, and everything that the server has sent to it unasked."""

    def __init__(self, client: Client, mode: str) -> None:
        self.client = client
        self.mode = mode
        self.got: list[Any] = []
        self.answer = "accept"

    async def until(self, wanted: str) -> list[Any]:
        """Wait for a notification, and return all that came."""
        with anyio.move_on_after(_WAIT_SECONDS):
            while not any(wanted in json.dumps(one) for one in self.got):  # noqa: ASYNC110 - polls
                await anyio.sleep(0.01)
        found, self.got = self.got, []
        return [one for one in found if wanted in json.dumps(one)]


def shown(value: Any) -> Any:
    """Return a value of the client as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return value


def behaviour(*kinds: str, name: str = "") -> Callable[[Observe], Observe]:
    def add(observe: Observe) -> Observe:
        for kind in kinds:
            BEHAVIOURS[kind][name or observe.__name__] = observe
        return observe

    return add


def calls(kind: str, name: str, tool: str, args: dict[str, Any]) -> None:
    """Add the behaviour of one tool call."""

    async def observe(watcher: Watcher) -> Any:
        return shown(await watcher.client.call_tool(tool, args))

    BEHAVIOURS[kind][name] = observe


calls("python", "text", "echo", {"words": "hello"})
calls("python", "unicode", "echo", {"words": 'é 😀 \u2028 \\ " \n \u0000'})
calls("python", "structured output", "add", {"parts": [1, 2, 3]})
calls("python", "large numbers", "add", {"parts": [2**53 + 1, -(2**62)]})
calls("python", "nested arguments", "nested", {"value": {"a": [{"b": None}, 1.5, True, "c"]}})
calls("python", "an error inside a tool", "fail", {"why": "because"})
calls("python", "an unknown tool", "no_such_tool", {})
calls("python", "invalid arguments", "add", {"parts": "none"})
calls("python", "no content", "nothing", {})
calls("python", "image, sound, link and resource", "picture", {})
calls("python", "a long result", "long", {"count": 20_000})
calls("everything", "text", "echo", {"message": "hello"})
calls("everything", "a sum", "get-sum", {"a": 1.5, "b": -2})
calls("everything", "an image", "get-tiny-image", {})
calls(
    "everything",
    "annotations",
    "get-annotated-message",
    {"messageType": "error", "includeImage": True},
)
calls("everything", "resource links", "get-resource-links", {"count": 3})
calls(
    "everything",
    "an embedded resource",
    "get-resource-reference",
    {"resourceType": "Text", "resourceId": 1},
)
calls("everything", "structured output", "get-structured-content", {"location": "Chicago"})
calls("everything", "invalid arguments", "get-sum", {"a": "x"})
calls("everything", "an unknown tool", "no_such_tool", {})
calls("everything", "sampling", "trigger-sampling-request", {"prompt": "hi", "maxTokens": 5})
calls("everything", "elicitation", "trigger-elicitation-request", {})
calls("everything", "roots", "get-roots-list", {})
calls("files", "allowed directories", "list_allowed_directories", {})
calls("files", "a file", "read_text_file", {"path": "a.txt"})
calls("files", "the first line", "read_text_file", {"path": "a.txt", "head": 1})
calls("files", "a missing file", "read_text_file", {"path": "missing.txt"})
calls("files", "a path outside", "read_text_file", {"path": "/etc/hostname"})
calls("files", "several files", "read_multiple_files", {"paths": ["a.txt", "missing.txt"]})
calls("files", "a new file", "write_file", {"path": "new.txt", "content": "é\n"})
calls(
    "files",
    "an edit",
    "edit_file",
    {"path": "new.txt", "edits": [{"oldText": "é", "newText": "e"}]},
)
calls("files", "a directory", "list_directory", {"path": "."})
calls("files", "a search", "search_files", {"path": ".", "pattern": "**/*.txt"})


@behaviour("python", "everything", "files", name="server and capabilities")
async def server_and_capabilities(watcher: Watcher) -> Any:
    client = watcher.client
    parts = (client.server_info, client.server_capabilities, client.instructions)
    return [client.protocol_version, *map(shown, parts)]


@behaviour("python", "everything", "files", name="the list of tools")
async def tools(watcher: Watcher) -> Any:
    return shown(await watcher.client.list_tools())


@behaviour("python", "everything", name="the list of resources")
async def resources(watcher: Watcher) -> Any:
    return shown(await watcher.client.list_resources())


@behaviour("python", "everything", name="the list of templates")
async def templates(watcher: Watcher) -> Any:
    return shown(await watcher.client.list_resource_templates())


@behaviour("python", "everything", name="the list of prompts")
async def prompts(watcher: Watcher) -> Any:
    return shown(await watcher.client.list_prompts())


def reads(kind: str, name: str, uri: str) -> None:
    async def observe(watcher: Watcher) -> Any:
        return shown(await watcher.client.read_resource(uri))

    BEHAVIOURS[kind][name] = observe


reads("python", "a resource", "note://a")
reads("python", "bytes of a resource", "bytes://b")
reads("python", "a resource of a template", "person://ann")
reads("python", "an unknown resource", "note://none")
reads("everything", "a resource of a template", "demo://resource/dynamic/text/1")


@behaviour("everything", name="bytes of a resource")
async def blob(watcher: Watcher) -> Any:
    found = shown(await watcher.client.read_resource("demo://resource/dynamic/blob/2"))
    for one in found["contents"]:
        # The bytes contain the time.
        one["blob"] = re.sub(r"[\d:]+", "", b64decode(one["blob"]).decode())
    return found


reads("everything", "an unknown resource", "demo://none")


def gets(kind: str, name: str, prompt: str, args: dict[str, str]) -> None:
    async def observe(watcher: Watcher) -> Any:
        return shown(await watcher.client.get_prompt(prompt, args))

    BEHAVIOURS[kind][name] = observe


gets("python", "a prompt", "greet", {"name": "Ann"})
gets("python", "a prompt without its argument", "greet", {})
gets("python", "an unknown prompt", "none", {})
gets("everything", "a prompt", "args-prompt", {"city": "Bonn"})
gets("everything", "a prompt without arguments", "simple-prompt", {})
gets(
    "everything",
    "a prompt with a resource",
    "resource-prompt",
    {"resourceType": "Text", "resourceId": "1"},
)


@behaviour("python", name="completion")
async def completion(watcher: Watcher) -> Any:
    ref = types.PromptReference(type="ref/prompt", name="greet")
    return shown(await watcher.client.complete(ref, {"name": "name", "value": "A"}))


@behaviour("everything", name="completion")
async def completion_of_everything(watcher: Watcher) -> Any:
    ref = types.PromptReference(type="ref/prompt", name="completable-prompt")
    return shown(await watcher.client.complete(ref, {"name": "department", "value": "E"}))


@behaviour("python", name="progress")
async def progress(watcher: Watcher) -> Any:
    seen: list[Any] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append([done, total, message])

    result = await watcher.client.call_tool("steps", {"count": 4}, progress_callback=note)
    return [seen, shown(result)]


@behaviour("everything", name="progress")
async def progress_of_everything(watcher: Watcher) -> Any:
    seen: list[Any] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append([done, total, message])

    args = {"duration": 0.2, "steps": 2}
    tool = "trigger-long-running-operation"
    return [shown(await watcher.client.call_tool(tool, args, progress_callback=note)), seen]


@behaviour("python", name="log messages")
async def log_messages(watcher: Watcher) -> Any:
    result = await watcher.client.call_tool("log", {})
    return [shown(result), len(await watcher.until("second")) > 0]


@behaviour("python", name="unknown fields of _meta")
async def unknown_meta(watcher: Watcher) -> Any:
    return shown(await watcher.client.call_tool("meta", {}, meta={"own/field": "1"}))


@behaviour("python", name="parallel calls")
async def parallel(watcher: Watcher) -> Any:
    found: dict[int, Any] = {}

    async def one(number: int) -> None:
        found[number] = shown(await watcher.client.call_tool("echo", {"words": str(number)}))

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(one, number)
    return [found[number] for number in range(10)]


@behaviour("python", name="cancellation")
async def cancellation(watcher: Watcher) -> Any:
    outcome = "finished"
    try:
        await watcher.client.call_tool("slow", {}, read_timeout_seconds=1.0)
    except MCPError as error:
        outcome = str(error.error.code)
    count: Any = None
    with anyio.move_on_after(_WAIT_SECONDS):
        while count != {"result": 1}:
            result = await watcher.client.call_tool("cancelled", {})
            count = result.structured_content
            await anyio.sleep(0.05)
    return [outcome, count]


def elicits(name: str, answer: str) -> None:
    async def observe(watcher: Watcher) -> Any:
        watcher.answer = answer
        tool = "ask" if watcher.mode == "legacy" else "ask_modern"
        try:
            return shown(await watcher.client.call_tool(tool, {}))
        finally:
            watcher.answer = "accept"

    BEHAVIOURS["python"][name] = observe


elicits("elicitation, accepted", "accept")
elicits("elicitation, declined", "decline")
elicits("elicitation, cancelled", "cancel")


@behaviour("python", name="sampling")
async def sampling(watcher: Watcher) -> Any:
    return shown(await watcher.client.call_tool("sample", {}))


@behaviour("python", name="roots")
async def roots(watcher: Watcher) -> Any:
    return shown(await watcher.client.call_tool("roots", {}))


@behaviour("python", "everything", "files", name="ping")
async def ping(watcher: Watcher) -> Any:
    return shown(await watcher.client.send_ping())


@behaviour("python", "everything", name="the level of the log")
async def level(watcher: Watcher) -> Any:
    return shown(await watcher.client.set_logging_level("debug"))


@behaviour("python", "everything", name="a subscription")
async def subscription(watcher: Watcher) -> Any:
    uri = "note://a" if "note" in str(shown(await watcher.client.list_resources())) else ""
    return shown(await watcher.client.subscribe_resource(uri or "demo://resource/dynamic/text/1"))


@behaviour("everything", name="the end of a subscription")
async def unsubscription(watcher: Watcher) -> Any:
    return shown(await watcher.client.unsubscribe_resource("demo://resource/dynamic/text/1"))


@behaviour("python", name="an updated resource")
async def updated(watcher: Watcher) -> Any:
    result = await watcher.client.call_tool("touch", {})
    if watcher.mode != "legacy":
        return shown(result)
    return [shown(result), await watcher.until("resources/updated")]


@behaviour("python", "everything", name="changed roots")
async def changed_roots(watcher: Watcher) -> Any:
    await watcher.client.send_roots_list_changed()
    return shown(await watcher.client.list_tools())


@behaviour("python", name="changed tools")
async def changed_tools(watcher: Watcher) -> Any:
    result = await watcher.client.call_tool("grow", {})
    came = await watcher.until("tools/list_changed") if watcher.mode == "legacy" else []
    listed = await watcher.client.list_tools()
    grown = await watcher.client.call_tool("grown", {})
    return [shown(result), came, sorted(one.name for one in listed.tools), shown(grown)]


@behaviour("everything", name="a log that goes on")
async def simulated_log(watcher: Watcher) -> Any:
    begun = shown(await watcher.client.call_tool("toggle-simulated-logging", {}))
    came = await watcher.until("notifications/message")
    return [begun, bool(came)]


async def observe_all(kind: str, mode: str, server: Any) -> dict[str, Any]:
    watcher: Watcher

    async def handle(message: Any) -> None:
        watcher.got.append(shown(message) if not isinstance(message, Exception) else str(message))

    async def log(params: Any) -> None:
        watcher.got.append({"method": "notifications/message", "params": shown(params)})

    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        del context
        text = types.TextContent(type="text", text=f"hello after {len(params.messages)}")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        del context, params
        content = {"name": "Ann"} if watcher.answer == "accept" else None
        return types.ElicitResult(action=watcher.answer, content=content)

    async def list_roots(context: Any) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp", name="tmp")])

    client = Client(
        server,
        mode=mode,
        message_handler=handle,
        logging_callback=log,
        log_level=None if mode == "legacy" else "debug",
        sampling_callback=sample,
        elicitation_callback=elicit,
        # server-filesystem lets roots replace the directories of its command.
        list_roots_callback=None if kind == "files" else list_roots,
        cache=None,
    )
    watcher = Watcher(client, mode)
    found: dict[str, Any] = {}
    async with client:
        for name, observe in BEHAVIOURS[kind].items():
            try:
                with anyio.fail_after(60):
                    found[name] = await observe(watcher)
            except MCPError as error:
                found[name] = {"error": shown(error.error)}
            except Exception as error:  # noqa: BLE001 - what the client raises is a behaviour too
                found[name] = {"raised": f"{type(error).__name__}: {error}"}
    return found


def main() -> None:
    kind, mode, *command = sys.argv[1:]
    warnings.simplefilter("ignore")
    server: Any = command[0]
    if not command[0].startswith("http"):
        server = StdioServerParameters(command=command[0], args=command[1:])
    found = anyio.run(observe_all, kind, mode, server)
    sys.stdout.write(_CHANGING.sub("CHANGES", json.dumps(found)))


if __name__ == "__main__":
    main()
