"""Lists the public names of a package from its sources. `inventory.json` is its output.

python inventory.py VERSION=DIRECTORY... > inventory.json
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def public_names(tree: ast.Module) -> set[str]:
    """Return the public names that a module defines or exports."""
    found = {name for node in tree.body for name in _bound(node)}
    return {name for name in found if not name.startswith("_")}


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id
                if target.id == "__all__" and node.value is not None:
                    yield from ast.literal_eval(node.value)


def inventory(root: Path) -> dict[str, list[str]]:
    found = {}
    for path in sorted(root.rglob("*.py")):
        module = ".".join((root.name, *path.relative_to(root).with_suffix("").parts))
        names = public_names(ast.parse(path.read_text(encoding="utf-8")))
        if ".cli" not in module:
            found[module.removesuffix(".__init__")] = sorted(names)
    return found


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    taken = {version: inventory(Path(place)) for version, place in given.items()}
    json.dump(taken, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
