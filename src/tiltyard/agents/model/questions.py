"""Answers the questions of guardrails with a language model.

The operator configures the model in a TOML file. Every exchange is recorded, a failure too, so a
session can be replayed without the model. A budget bounds the requests, and each request has a
deadline.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, structs

from tiltyard.agents.local import LocalModelError, LocalServer
from tiltyard.agents.model.account import Account
from tiltyard.agents.model.endpoint import Endpoint, check_address, check_key
from tiltyard.agents.model.exchange import Asked, Exchanges
from tiltyard.agents.model.record import Answered, Identity, Record
from tiltyard.agents.model.replies import content_of
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.asking import Ask, AskError, checked_answer, checked_question
from tiltyard.contracts.purse import OutOfRequestsError, Purse
from tiltyard.foundation.printable import printable
from tiltyard.foundation.strict_json import strict_decoder

LOCAL: Final = "local"
MAX_SECONDS: Final = 30.0
"""Three questions must end before a client or a hook gives up."""
MAX_ANSWER_CHARS: Final = 50_000
_AGENT: Final = "guardrail"
"""The identity of these records: an agent's record cannot be taken for one."""
_NO_ANSWER: Final = 0
"""The status of a recorded failure."""
_REFUSED: Final = 400
_SEED: Final = 0
_SYSTEM: Final = (
    "You answer one question of a security program. Answer with one JSON value that follows this "
    "schema, and write nothing else: "
)


class ModelSettingsError(ValueError):
    """The model cannot be used. The message says what to do."""


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model guardrails may ask, and how much."""

    model: Annotated[str, Meta(min_length=1, max_length=200)]
    """The model's name at the endpoint, or `local` for the small model of the extra `local`."""
    base_url: str = ""
    """The address of an OpenAI-compatible endpoint; empty for OPENAI_BASE_URL, or else OpenAI."""
    questions: Annotated[int, Meta(ge=0, le=1_000_000)] = 200
    """How many requests one session may send."""
    seconds: Annotated[float, Meta(gt=0, le=MAX_SECONDS)] = 10.0
    """The deadline of one request."""
    max_tokens: Annotated[int, Meta(ge=1, le=20_000)] = 1_000
    """Length limit of one answer."""
    record: str = ""
    """A directory for the exchanges. Without one they stay in memory."""
    replay: bool = False
    """Answer from the record alone."""


def read_model_settings(toml_text: str, place: Path) -> ModelSettings:
    """Read settings from TOML. A relative `record` begins at `place`, the file's directory."""
    try:
        found = msgspec.convert(tomllib.loads(toml_text), ModelSettings)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        keys = ", ".join(ModelSettings.__struct_fields__)
        raise ModelSettingsError(
            f"the settings of the model are wrong: {printable(error, limit=300)}; the keys are "
            f"{keys}"
        ) from None
    if found.replay and not found.record:
        raise ModelSettingsError("replay needs a record: name its directory")
    if found.base_url and found.model == LOCAL:
        raise ModelSettingsError("the model `local` has no base_url; name the model at the address")
    try:
        check_address(found.base_url)
        if found.model != LOCAL and not found.replay:
            check_key(found.base_url)
    except AgentGoneError as error:
        raise ModelSettingsError(str(error).replace("--base-url", "base_url")) from None
    if found.record:
        found = structs.replace(found, record=str(place / found.record))
    return found


@contextmanager
def open_model(settings: ModelSettings) -> Iterator[Ask]:
    """Yield what answers questions, until the block ends."""
    record = Record(Path(settings.record) if settings.record else None, closed=settings.replay)
    with ExitStack() as stack:
        try:
            name, endpoint = _open(settings, record, stack)
        except (AgentGoneError, LocalModelError) as error:
            raise ModelSettingsError(str(error)) from None
        yield ModelAnswers(name, settings, record, endpoint).ask


def _open(settings: ModelSettings, record: Record, stack: ExitStack) -> tuple[str, Endpoint | None]:
    if record.closed:
        known = record.identity
        if known is None or known.agent != _AGENT:
            raise AgentGoneError("the directory has no record of a guardrail's questions")
        record.begin(known)
        return known.model, None
    name, base_url, version = settings.model, settings.base_url, ""
    local = settings.model == LOCAL
    if local:
        server = stack.enter_context(LocalServer())
        name, base_url, version = server.model, server.url, server.version
    record.begin(Identity(_AGENT, name, version))
    # A retry would not end before the deadline.
    endpoint = Endpoint(
        name, base_url=base_url, with_key=not local, seconds=settings.seconds, retries=0
    )
    stack.callback(endpoint.close)
    return name, endpoint


class ModelAnswers:
    """Answers questions. `endpoint` is None for a replay."""

    def __init__(
        self, name: str, settings: ModelSettings, record: Record, endpoint: Asked | None
    ) -> None:
        self._name = name
        self._settings = settings
        self.purse = Purse(settings.questions)
        failing = None if endpoint is None else _Failing(endpoint)
        self._exchanges = Exchanges(record, failing, Account())
        self._failures: Counter[bytes] = Counter()
        """How often each request failed. Only a failed request is sent again."""
        self._plain = False
        """Without temperature and seed, which reasoning models refuse."""

    def ask(self, question: str, schema: dict[str, Any]) -> Any:
        """Return the model's answer. Raise an AskError if there is none that can be used."""
        text, checked = checked_question(question, schema)
        answered = self._send(text, checked)
        if answered.status == _REFUSED and not self._plain:
            self._plain = True
            answered = self._send(text, checked)
        if answered.status == _NO_ANSWER:
            raise AskError(answered.body)
        if answered.status != 200:
            raise AskError(f"the endpoint does not take this question ({answered.status})")
        return checked_answer(_read(answered.body), checked)

    def _send(self, question: str, schema: dict[str, Any]) -> Answered:
        body = self._body(question, schema)
        key = msgspec.json.encode(body)
        scope = (_AGENT, str(self._failures[key]))
        try:
            answered, _ = self._exchanges.ask(scope, self.purse, body, self._settings.max_tokens)
        except OutOfRequestsError as error:
            raise AskError(f"the budget for questions is used up: {error}") from None
        except AgentGoneError as error:
            raise AskError(str(error)) from None
        if answered.status == _NO_ANSWER:
            self._failures[key] += 1
        return answered

    def _body(self, question: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a whole request: everything that the answer may depend on."""
        system = _SYSTEM + msgspec.json.encode(schema).decode()
        body: dict[str, Any] = {
            "model": self._name,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": question},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            },
        }
        most = self._settings.max_tokens
        if self._plain:
            body["max_completion_tokens"] = most
        else:
            body |= {"max_tokens": most, "temperature": 0, "seed": _SEED}
        if self._settings.model == LOCAL:
            # A server's prompt cache can change its answers.
            body["cache_prompt"] = False
        return body


class _Failing:
    """An endpoint whose failures are answers, so that the record has them."""

    def __init__(self, endpoint: Asked) -> None:
        self._endpoint = endpoint

    def ask(self, body: dict[str, Any]) -> Answered:
        try:
            return self._endpoint.ask(body)
        except AgentGoneError as error:
            return Answered(_NO_ANSWER, str(error))


def _read(body: str) -> Any:
    said = content_of(body)
    if said is None:
        raise AskError("the model gave no answer")
    if len(said) > MAX_ANSWER_CHARS:
        raise AskError(f"the model's answer has more than {MAX_ANSWER_CHARS:,} characters")
    try:
        return _DECODER.decode(said)
    except (ValueError, RecursionError):
        raise AskError("the model's answer is not JSON") from None


_DECODER: Final = strict_decoder()
