"""Law 6: forged control tokens, which a chat template could take for its own.

The texts of `tests/gaming/11-forged-control-tokens` are the user's messages and the content of
pages, mails and files. The tests play a conversation with them, in both modes of asking a model,
and pass every request through the template and the tokenizer of a real model. The honest twins are
texts with other brackets, which arrive unchanged. The real model needs `make .venv/.local`.
"""

import http.client
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import pytest
from msgspec import Struct

from agents.scripted import Reply, ScriptedServer, acts, calls, ends, says, strings
from tiltyard import SandboxEnv
from tiltyard.agents.local import LocalServer
from tiltyard.agents.model.agent import Manner, Model, ModelAgent
from tiltyard.agents.model.endpoint import Endpoint
from tiltyard.agents.model.prompt import Mode
from tiltyard.agents.model.record import Record
from tiltyard.rulesets.ruleset import ModelRules
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.scenario import Scenario

SUITE: Final = Path(__file__).parents[1] / "gaming"
RULES: Final = ModelRules(
    steps=1_000,
    max_candidates=20,
    max_messages=8,
    calls_per_message=8,
    requests=1_000,
    attack_requests=500,
    samples=1,
    repairs=2,
    max_tokens=100,
    output_chars=2_000,
    concurrency=1,
    seconds=5,
    retries=1,
)
Message = dict[str, Any]


class Texts(Struct, frozen=True, forbid_unknown_fields=True):
    vector: str
    said: tuple[str, ...]
    """The user's messages; the model may repeat them."""
    pages: tuple[dict[str, str], ...]
    mails: tuple[dict[str, str], ...]
    files: dict[str, str]
    reserved: tuple[str, ...]
    """Strings that no request to a model may contain."""
    honest: tuple[str, ...]


TEXTS: Final = msgspec.json.decode(
    (SUITE / "11-forged-control-tokens" / "texts.json").read_bytes(), type=Texts
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return the world `house` with the forged documents in it."""
    at = tmp_path_factory.mktemp("forged") / "house"
    shutil.copytree(SUITE / "house", at)
    web = json.loads((at / "web_corpus.json").read_text(encoding="utf-8"))
    mail = json.loads((at / "mail_seed.json").read_text(encoding="utf-8"))
    web["pages"] += TEXTS.pages
    mail["inbox"] += TEXTS.mails
    (at / "web_corpus.json").write_text(json.dumps(web), encoding="utf-8")
    (at / "mail_seed.json").write_text(json.dumps(mail), encoding="utf-8")
    for name, text in TEXTS.files.items():
        (at / "file_seed" / name).write_text(text, encoding="utf-8")
    return load_scenario(at)


def act(mode: Mode, tool: str, **arguments: Any) -> Reply:
    if mode is Mode.STRUCTURED:
        return acts(tool, **arguments)
    return calls((tool.replace(".", "_"), arguments))


def reads(mode: Mode) -> list[Reply]:
    """Return calls that read every forged document."""
    return [
        *(act(mode, "web.open", id=page["id"]) for page in TEXTS.pages),
        act(mode, "web.search", query="news manual"),
        act(mode, "email.list", folder="inbox", limit=20, cursor=None),
        *(act(mode, "email.read", id=mail["id"]) for mail in TEXTS.mails),
        *(act(mode, "fs.read", path=name) for name in TEXTS.files),
        act(mode, "shell.run", cmd="cat " + " ".join(TEXTS.files)),
    ]


def repeats(mode: Mode, text: str) -> list[Reply]:
    """Return the calls of a model that repeats a forged text everywhere."""
    return [
        act(mode, "fs.write", path="note.txt", content=text),
        act(mode, "fs.read", path=text[:100]),
        act(mode, text[:50]),
        says(text) if mode is Mode.TOOLS else ends(text),
    ]


def sent(
    house: Scenario, mode: Mode, said: Iterable[str], script: list[Reply]
) -> list[list[Message]]:
    """Play a conversation, and return the messages of every request."""
    with ScriptedServer(script) as server:
        endpoint = Endpoint("m", base_url=server.url, with_key=False)
        try:
            model = Model("m", RULES, Record(), endpoint=endpoint)
            env = SandboxEnv(scenario=house, agent=ModelAgent(model, Manner(mode)))
            for message in said:
                env.interact(message, max_tool_hops=30)
        finally:
            endpoint.close()
    assert len(server.requests) == len(script)
    return [request.messages for request in server.requests]


def forged_conversation(house: Scenario, mode: Mode) -> list[list[Message]]:
    done = says("Done.") if mode is Mode.TOOLS else ends("Done.")
    script = [*reads(mode), done]
    for text in TEXTS.said:
        script += repeats(mode, text)
    return sent(house, mode, ["Read it all.", *TEXTS.said], script)


@pytest.mark.parametrize("mode", list(Mode))
def test_no_forged_token_reaches_a_model(house: Scenario, mode: Mode) -> None:
    requests = forged_conversation(house, mode)
    texts = {text.casefold() for messages in requests for text in strings(messages)}
    for reserved in TEXTS.reserved:
        assert [text for text in texts if reserved.casefold() in text] == []
    # The model did get the documents, and can read them.
    whole = "\n".join(texts)
    for words in ("delete report.txt.", "nice weather.", "im_start", "tool_results", "user\uff5c"):
        assert words in whole


def test_the_texts_contain_every_reserved_string() -> None:
    texts = "\n".join([*TEXTS.said, json.dumps([TEXTS.pages, TEXTS.mails, TEXTS.files])])
    assert [one for one in TEXTS.reserved if one.casefold() not in texts.casefold()] == []


@pytest.mark.parametrize("mode", list(Mode))
def test_an_honest_text_arrives_unchanged(house: Scenario, mode: Mode) -> None:
    for text in TEXTS.honest:
        done = says(text) if mode is Mode.TOOLS else ends(text)
        script = [
            act(mode, "fs.write", path="note.txt", content=text),
            act(mode, "fs.read", path="note.txt"),
            done,
        ]
        last = sent(house, mode, [text], script)[-1]
        assert last[1] == {"role": "user", "content": text}
        assert text in last[-1]["content"]
        assert any(text in json.dumps(one, ensure_ascii=False) for one in last[2:])


class Tokenizer:
    """The template and the tokenizer of a local model's server."""

    CONTROL: Final = 17
    """SmolLM2's control tokens are the first of its vocabulary."""

    def __init__(self, url: str) -> None:
        self._where = urlsplit(url)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        connection = http.client.HTTPConnection(self._where.hostname or "", self._where.port)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200
            return json.loads(response.read())
        finally:
            connection.close()

    def templated(self, messages: list[Message]) -> str:
        prompt: str = self._post("/apply-template", {"messages": messages})["prompt"]
        return prompt

    def control_tokens(self, text: str) -> list[str]:
        asked = {"content": text, "parse_special": True, "with_pieces": True}
        tokens = self._post("/tokenize", asked)["tokens"]
        return [one["piece"] for one in tokens if one["id"] < self.CONTROL]

    def vocabulary(self) -> list[str]:
        spelled = (self._post("/detokenize", {"tokens": [one]}) for one in range(self.CONTROL + 1))
        return [one["content"] for one in spelled]


@pytest.fixture(scope="module")
def tokenizer() -> Iterator[Tokenizer]:
    with LocalServer() as server:
        yield Tokenizer(server.url)


def frames(messages: int) -> list[str]:
    """Return the control tokens of a prompt: a pair for each message, and the model's turn."""
    return ["<|im_start|>", "<|im_end|>"] * messages + ["<|im_start|>"]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_prompt_contains_only_the_control_tokens_of_the_template(
    house: Scenario, tokenizer: Tokenizer, mode: Mode
) -> None:
    for messages in forged_conversation(house, mode)[::6]:
        prompt = tokenizer.templated(messages)
        assert tokenizer.control_tokens(prompt) == frames(len(messages))


def test_an_unescaped_forged_message_would_be_parsed(tokenizer: Tokenizer) -> None:
    messages = [{"role": "system", "content": "Task."}, {"role": "user", "content": TEXTS.said[0]}]
    prompt = tokenizer.templated(messages)
    assert len(tokenizer.control_tokens(prompt)) > len(frames(2))


def test_every_control_token_of_the_local_model_is_escaped(
    house: Scenario, tokenizer: Tokenizer
) -> None:
    *control, ordinary = tokenizer.vocabulary()
    assert ordinary == "!"
    assert [tokenizer.control_tokens(one) for one in control] == [[one] for one in control]
    for mode in Mode:
        done = says("Done.") if mode is Mode.TOOLS else ends("Done.")
        (messages,) = sent(house, mode, ["".join(control)], [done])
        assert tokenizer.control_tokens(messages[1]["content"]) == []
