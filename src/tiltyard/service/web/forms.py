"""The forms of the organizer's pages."""

from typing import Any, Final

from django import forms
from django.utils import timezone

from tiltyard.service.actions.competitions import NEW_KEY
from tiltyard.service.actions.rejudging import BUDGETS
from tiltyard.service.models import Competition
from tiltyard.service.models.competitions import Visibility

KEEP: Final = "keep"
RULESETS: Final = {
    "design": 'extends = "design"\n',
    "arena": 'extends = "arena"\n',
}
_LOCAL: Final = "%Y-%m-%dT%H:%M"
_KEY_HELP: Final = (
    "`new` draws a key, 64 hexadecimal digits are a key of yours, and nothing plays the public "
    "seed, which competitors can play too."
)


class _Moment(forms.DateTimeField):
    """A moment in UTC."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput({"type": "datetime-local"}, format=_LOCAL)
        super().__init__(widget=widget, required=False, input_formats=[_LOCAL], **options)


class CompetitionForm(forms.Form):
    """Everything that an organizer decides about a competition."""

    title = forms.CharField(max_length=120)
    slug = forms.SlugField(
        max_length=60, label="Address", help_text="Letters, digits and hyphens: /c/ADDRESS."
    )
    rules = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 6}),
        help_text="The rules page, in Markdown.",
        max_length=100_000,
        strip=False,
    )
    ruleset_text = forms.CharField(
        label="Ruleset",
        widget=forms.Textarea({"rows": 5, "spellcheck": "false"}),
        max_length=100_000,
        strip=False,
        help_text='In TOML. `extends = "design"` plays attacks and guardrails, '
        '`extends = "arena"` guardrails on tools that they have never seen.',
    )
    budget = forms.ChoiceField(
        choices=[(one, one) for one in BUDGETS], help_text="`quick` has smaller budgets."
    )
    opens_at = _Moment(label="Opens (UTC)", help_text="Empty: at once.")
    closes_at = _Moment(label="Closes (UTC)", help_text="Empty: never.")
    freeze_at = _Moment(
        label="Freeze (UTC)", help_text="From here on the board stands still, until the final."
    )
    quota = forms.IntegerField(
        min_value=0, max_value=10_000, label="Quota", help_text="Submissions of a team in 24 hours."
    )
    finals = forms.IntegerField(
        min_value=1, max_value=100, help_text="How many submissions of a team play the final."
    )
    visibility = forms.ChoiceField(choices=Visibility.choices, help_text="Who sees the board.")
    board_key = forms.CharField(
        required=False, max_length=64, label="Key of the board", help_text=_KEY_HELP
    )
    final_key = forms.CharField(
        required=False, max_length=64, label="Key of the final", help_text=_KEY_HELP
    )

    def clean(self) -> dict[str, Any]:
        values = {**(super().clean() or {})}
        opens, closes, freeze = (values.get(f"{name}_at") for name in ("opens", "closes", "freeze"))
        if opens and closes and closes <= opens:
            self.add_error("closes_at", "A competition closes after it opens.")
        if opens and freeze and freeze <= opens:
            self.add_error("freeze_at", "The board freezes after the competition opens.")
        # Browsers send \r\n, and a ruleset must not differ by that.
        for name in ("rules", "ruleset_text"):
            values[name] = values.get(name, "").replace("\r\n", "\n")
        return values


def first_values() -> dict[str, Any]:
    """Return what the form of a new competition begins with: enough to press the button."""
    return {
        "title": "",
        "ruleset_text": RULESETS["design"],
        "budget": "official",
        "quota": 5,
        "finals": 2,
        "visibility": Visibility.EVERYBODY,
        "board_key": NEW_KEY,
        "final_key": NEW_KEY,
        "opens_at": timezone.now().replace(second=0, microsecond=0),
    }


def values_of(competition: Competition) -> dict[str, Any]:
    """Return what the form of a competition begins with. A key is not shown."""
    names = [name for name in CompetitionForm.base_fields if not name.endswith("_key")]
    found = {name: getattr(competition, name) for name in names}
    return found | {
        name: KEEP if getattr(competition, name) else "" for name in ("board_key", "final_key")
    }


def with_kept_keys(values: dict[str, Any], competition: Competition) -> dict[str, Any]:
    """Replace `keep` by the key that a competition has."""
    kept = {
        name: getattr(competition, name)
        for name in ("board_key", "final_key")
        if values.get(name) == KEEP
    }
    return values | kept
