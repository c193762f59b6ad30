"""Questions of guardrails to a model: records, replays, budgets, deadlines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from scripted_models import Adviser, ModelServer
from tiltyard import AskError
from tiltyard.agents.model.questions import (
    ModelAnswers,
    ModelSettings,
    ModelSettingsError,
    open_model,
    read_model_settings,
)
from tiltyard.agents.model.record import Answered, Identity, Record
from tiltyard.contracts.agent import AgentGoneError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean"}},
    "required": ["yes"],
    "additionalProperties": False,
}
KEY = "sk-a-long-secret-key"


class Script:
    """An endpoint that gives these answers, one after the other. An error is raised."""

    def __init__(self, *answers: Answered | AgentGoneError) -> None:
        self._answers = [*answers]
        self.asked: list[dict[str, Any]] = []

    def ask(self, body: dict[str, Any]) -> Answered:
        self.asked.append(body)
        found = self._answers.pop(0)
        if isinstance(found, AgentGoneError):
            raise found
        return found


def completion(content: str, ended: str = "stop", **more: Any) -> Answered:
    choice = {"message": {"content": content, **more}, "finish_reason": ended}
    return Answered(200, json.dumps({"choices": [choice]}))


def answers(
    endpoint: Any, settings: ModelSettings | None = None, record: Record | None = None
) -> ModelAnswers:
    kept = record or Record()
    kept.begin(Identity("guardrail", "m"))
    return ModelAnswers("m", settings or ModelSettings("m"), kept, endpoint)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer(Adviser(lambda question: json.dumps({"yes": "Anna" in question}))) as made:
        yield made


def test_a_question_is_recorded_and_replayed_without_the_model(
    server: ModelServer, tmp_path: Path
) -> None:
    settings = ModelSettings("m", server.url, record=str(tmp_path / "record"))
    with open_model(settings) as ask:
        assert ask("Did Anna ask?", SCHEMA) == {"yes": True}
        assert ask("Did Bob ask?", SCHEMA) == {"yes": False}
        assert ask("Did Anna ask?", SCHEMA) == {"yes": True}
    assert server.requests == 2  # The record answers the third question.
    assert server.keys == {f"Bearer {KEY}"}
    files = [path.read_text(encoding="utf-8") for path in (tmp_path / "record").iterdir()]
    assert not any(KEY in text or server.url in text for text in files)
    server.stop()
    with open_model(structs.replace(settings, replay=True)) as ask:
        assert ask("Did Anna ask?", SCHEMA) == {"yes": True}
        with pytest.raises(AskError, match="the record has no answer"):
            ask("Did Eve ask?", SCHEMA)


def test_the_endpoint_gets_the_question_and_the_schema(server: ModelServer) -> None:
    with open_model(ModelSettings("m", server.url, max_tokens=77)) as ask:
        ask("Did Anna ask?", SCHEMA)
    assert isinstance(server.model, Adviser)
    (body,) = server.model.asked
    assert body["messages"][-1] == {"role": "user", "content": "Did Anna ask?"}
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 77, 0)


@pytest.mark.parametrize(
    ("answered", "why"),
    [
        (completion("maybe"), "is not JSON"),
        (completion('{"yes": 1}'), "at /yes is not of the type boolean"),
        (completion('{"yes": true, "yes": false}'), "is not JSON"),
        (completion('{"yes": true}', ended="length"), "gave no answer"),
        (completion("", refusal="I cannot say."), "gave no answer"),
        (completion(" " * 60_000 + '{"yes": true}'), "more than 50,000 characters"),
        (Answered(200, "<html>"), "gave no answer"),
        (Answered(422, "no"), "does not take this question"),
    ],
)
def test_a_wrong_answer_is_an_error_that_a_replay_repeats(
    answered: Answered, why: str, tmp_path: Path
) -> None:
    with pytest.raises(AskError, match=why):
        answers(Script(answered), record=Record(tmp_path)).ask("Well?", SCHEMA)
    with pytest.raises(AskError, match=why):
        answers(None, record=Record(tmp_path, closed=True)).ask("Well?", SCHEMA)


def test_a_failed_request_is_recorded_and_the_next_one_is_sent(tmp_path: Path) -> None:
    def play(found: ModelAnswers) -> list[str]:
        seen = []
        for _ in range(3):
            try:
                seen.append(str(found.ask("Well?", SCHEMA)))
            except AskError as error:
                seen.append(str(error))
        return seen

    late = AgentGoneError("the model did not answer within 10 s")
    script = Script(late, completion('{"yes": true}'))
    live = play(answers(script, record=Record(tmp_path)))
    assert live == ["the model did not answer within 10 s", "{'yes': True}", "{'yes': True}"]
    assert len(script.asked) == 2
    assert play(answers(None, record=Record(tmp_path, closed=True))) == live


def test_a_model_that_refuses_a_temperature_is_asked_without() -> None:
    script = Script(Answered(400, "no temperature"), *[completion('{"yes": true}')] * 2)
    found = answers(script)
    assert found.ask("Well?", SCHEMA) == {"yes": True}
    assert found.ask("Really?", SCHEMA) == {"yes": True}
    assert ["temperature" in body for body in script.asked] == [True, False, False]
    assert [body.get("max_completion_tokens") for body in script.asked] == [None, 1000, 1000]


def test_the_budget_bounds_requests_and_repeats_are_free() -> None:
    script = Script(*[completion('{"yes": true}')] * 3)
    found = answers(script, ModelSettings("m", questions=2))
    for question in ("One?", "Two?", "One?", "Two?"):
        assert found.ask(question, SCHEMA) == {"yes": True}
    with pytest.raises(AskError, match="the budget for questions is used up: the 2 requests"):
        found.ask("Three?", SCHEMA)
    assert len(script.asked) == 2


def test_a_missed_deadline_is_an_error(server: ModelServer) -> None:
    server.holds_at = 1
    with (
        open_model(ModelSettings("m", server.url, seconds=0.3)) as ask,
        pytest.raises(AskError, match=r"did not answer within 0\.3 s"),
    ):
        ask("Did Anna ask?", SCHEMA)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("model = ", "the settings of the model are wrong"),
        ("name = 'm'", "contains unknown field `name`; the keys are model, base_url"),
        ("model = 'm'\nseconds = 31", "<= 30.0"),
        ("model = 'm'\nreplay = true", "replay needs a record"),
        ("model = 'local'\nbase_url = 'http://127.0.0.1:1/v1'", "`local` has no base_url"),
        ("model = 'm'\nbase_url = 'ftp://example.org'", "base_url must be an address"),
        ("model = 'm'\nbase_url = 'http://a:b@example.org/v1'", "must not contain a user"),
        ("model = 'm'", "there is no key for OpenAI"),
    ],
)
def test_wrong_settings_say_what_to_do(
    text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelSettingsError, match=why):
        read_model_settings(text, Path("/etc"))


def test_a_record_is_found_beside_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = read_model_settings("model = 'm'\nrecord = 'asked'", Path("/srv/agent"))
    assert found.record == "/srv/agent/asked"


def test_a_record_of_an_agent_is_not_replayed(tmp_path: Path) -> None:
    Record(tmp_path).begin(Identity("openai:m", "m"))
    settings = ModelSettings("m", record=str(tmp_path), replay=True)
    with pytest.raises(ModelSettingsError, match="no record of a guardrail"), open_model(settings):
        pass


def test_the_local_model_answers_and_its_record_gives_the_same(tmp_path: Path) -> None:
    """The test is about the exchange: the answer follows the schema, whatever it says."""
    settings = ModelSettings("local", seconds=300, max_tokens=200, record=str(tmp_path))
    with open_model(settings) as ask:
        live = ask("Did the user ask for a mail? The user says: send a mail to Bob.", SCHEMA)
    assert live.keys() == {"yes"}
    with open_model(structs.replace(settings, replay=True)) as ask:
        assert (
            ask("Did the user ask for a mail? The user says: send a mail to Bob.", SCHEMA) == live
        )
