"""Infer from a tool's declaration what a call does.

```python
from tiltyard.inference import infer, read_overlay

overlay = read_overlay(Path("tools.toml").read_text(), "tools.toml")
found = infer(declaration, overlay)
found.effect, found.roles, found.source
```
"""

from tiltyard.inference.from_declaration import infer
from tiltyard.inference.kinds import Effect, Inferred, Role, Source
from tiltyard.inference.overlay import Correction, Overlay, OverlayError, read_overlay

__all__ = [
    "Correction",
    "Effect",
    "Inferred",
    "Overlay",
    "OverlayError",
    "Role",
    "Source",
    "infer",
    "read_overlay",
]
