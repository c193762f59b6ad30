"""The operator's policy, from TOML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.contracts.policy import Policy, PolicyError, check_policy, read_policy


def test_reads_every_field() -> None:
    policy = read_policy(
        """
        owner_names = ["Ann Example"]
        owner_addresses = ["ann@corp.example"]
        internal_domains = ["corp.example"]
        protected = ["payroll/*"]
        trusted_sources = ["calendar"]
        """
    )
    assert policy == Policy(
        ("Ann Example",), ("ann@corp.example",), ("corp.example",), ("payroll/*",), ("calendar",)
    )
    assert read_policy("") == Policy()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("owner_names = [", "the policy is not TOML"),
        ("owner = []", "its keys are owner_names, owner_addresses, internal_domains, protected"),
        ('protected = "a"', "each with a list of strings"),
        ("protected = [1]", "`$.protected[0]`"),
        ('protected = ["a\\u202eb"]', "protected[0] has the character U+202E at position 1"),
        (f'protected = ["{"a" * 501}"]', "protected[0] is not a string of at most 500 characters"),
        (f"protected = {['a'] * 1_001}", "protected has 1,001 entries; the limit is 1,000"),
    ],
)
def test_a_wrong_policy_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(PolicyError) as raised:
        read_policy(text)
    assert complaint in str(raised.value)
    assert str(raised.value).isprintable()


def test_a_policy_fits_into_one_frame() -> None:
    entries = tuple(str(number) + "é" * 400 for number in range(1_000))
    with pytest.raises(PolicyError, match="the limit is 200,000: use patterns"):
        check_policy(Policy(protected=entries))


@given(st.text())
def test_arbitrary_text_raises_nothing_but_policy_errors(text: str) -> None:
    message = ""
    try:
        check_policy(read_policy(text))
    except PolicyError as error:
        message = str(error)
    assert message.isprintable()
