"""The two tracks of a competition, and the part of a submission that plays in each."""

from typing import Final, Literal

Track = Literal["offense", "defense"]
Part = Literal["attack", "guardrail"]
"""What a submission contains: an attack, a guardrail, or both."""

PART_OF: Final[dict[Track, Part]] = {"offense": "attack", "defense": "guardrail"}
TRACK_OF: Final[dict[Part, Track]] = {part: track for track, part in PART_OF.items()}
TRACKS: Final = tuple(PART_OF)
PARTS: Final = tuple(TRACK_OF)

CLASSES: Final[dict[Part, str]] = {"attack": "AttackAlgorithm", "guardrail": "Guardrail"}
"""The class that a submission must define for each part. Its usual file is `attack.py` or
`guardrail.py`."""
