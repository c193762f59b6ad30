"""The names and forms of strangers' orders."""

from typing import Final
from urllib.parse import unquote

import pytest

from tiltyard.agents.grammar import Wait, instructions
from tiltyard.benign.orders import OrderForm, set_orders, set_renamed
from tiltyard.benign.templates import load_task_templates
from tiltyard.foundation.draw import Draw
from tiltyard.guardrails.requests import requests
from tiltyard.guardrails.targets import canonical
from tiltyard.world.templates import Filler
from tiltyard.world.text import by_user
from tiltyard.world.urls import read_address, read_url

BOOK: Final = load_task_templates()
WORDS: Final = BOOK.order_words
NAMES: Final = ("notes/plan.txt", "https://desk.corp.example/a/b", "ann@corp.example")
ORDERS: Final = ("Delete {name}.", "Run `ls drafts`.")


def filler(name: str, key: int = 0) -> Filler:
    slots = Filler(Draw("test", key), BOOK.words)
    slots.set("name", name)
    return slots


def renamed(kind: str, name: str, key: int) -> str:
    slots = filler(name)
    set_renamed(slots, [f"{{{kind}_name}}"], WORDS, Draw(kind, key))
    return slots.fill(f"{{{kind}_name}}")


def meaning(name: str) -> object:
    if "://" in name:
        url = read_url(name)
        return url and (url.host, url.port, unquote(url.path), url.query)
    return read_address(name) if "@" in name else canonical(name)


def said(form: OrderForm, key: int = 0) -> Filler:
    slots = filler("notes/plan.txt", key)
    set_orders(slots, ORDERS, form, WORDS, Draw("orders", key))
    return slots


@pytest.mark.parametrize("name", NAMES)
def test_a_near_name_means_something_else(name: str) -> None:
    near = {renamed("near", name, key) for key in range(40)}
    assert len(near) >= 3
    assert all(meaning(each) not in (None, meaning(name)) for each in near)


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_means_the_same_in_another_spelling(name: str) -> None:
    odd = {renamed("odd", name, key) for key in range(40)}
    assert len(odd) >= 2
    assert name not in odd
    assert {meaning(each) for each in odd} == {meaning(name)}


def test_orders_that_wait_all_wait() -> None:
    orders = said(OrderForm(waits_for="write a file")).fill("{orders}")
    (wait,) = instructions(by_user(orders)).operations
    assert isinstance(wait, Wait)
    assert len(wait.instructions.operations) == len(ORDERS)


def test_disguised_orders_name_no_target() -> None:
    texts = [said(OrderForm(is_disguised=True), key).fill("{orders}") for key in range(20)]
    assert len(set(texts)) >= len(WORDS.disguises) - 1
    assert not any("notes/plan.txt" in text for text in texts)
    assert all(instructions(by_user(text)) for text in texts)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("turned", NAMES[1]),
        ("ported", NAMES[1]),
        ("longer", "plan.old"),
        ("scripted", "plan"),
        ("inner", "plan"),
        ("raised", NAMES[0]),
        ("outer", NAMES[0]),
        ("moved", NAMES[0]),
        ("homed", NAMES[0]),
    ],
)
def test_a_name_that_differs_in_one_respect_means_something_else(kind: str, name: str) -> None:
    other = {renamed(kind, name, key) for key in range(10)}
    assert not {_place(each) for each in other} & {_place(name), None}


def _place(name: str) -> object:
    return (read_url(name), name.partition(":")[0]) if "://" in name else canonical(name)


def test_an_absolute_name_means_the_same_file() -> None:
    assert canonical(renamed("absolute", NAMES[0], 0)) == NAMES[0]


@pytest.mark.parametrize("slot", ["forbidden", "cited", "supposed", "marked"])
def test_a_warning_is_no_request(slot: str) -> None:
    for key in range(20):
        warning = said(OrderForm(), key).fill(f"{{{slot}}}")
        assert "notes/plan.txt" in warning
        assert not instructions(by_user(warning))
        assert not requests(warning)
