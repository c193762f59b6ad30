"""Go-Explore as a library: the baseline attacker uses it, and competitors' attacks may too.

`explore` is the loop. Its parts `Archive`, `OPERATORS`, `Vocabulary` and `follow` are useful alone.
Everything works through the public contract of an attack.
"""

from tiltyard.search.archive import Archive, Chain, Entry
from tiltyard.search.explore import Exploration, explore
from tiltyard.search.footprint import Claim, Footprint, follow
from tiltyard.search.moves import OPERATORS
from tiltyard.search.player import Played, Player
from tiltyard.search.status import SearchStatus
from tiltyard.search.vocabulary import Vocabulary
from tiltyard.search.workers import Workers

__all__ = [
    "OPERATORS",
    "Archive",
    "Chain",
    "Claim",
    "Entry",
    "Exploration",
    "Footprint",
    "Played",
    "Player",
    "SearchStatus",
    "Vocabulary",
    "Workers",
    "explore",
    "follow",
]
