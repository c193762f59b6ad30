"""A script that parses the sources of a submission in a process of its own.

It runs isolated, on the standard library alone, and sees nothing but the text of the sources. Its
arguments are the limits of memory and seconds, and the names to look for. Its input is each source
with its length before it. It prints `ready`, and then for each source one line of JSON: where the
source binds those names, or why it cannot be parsed. The judge never imports this module.
"""

import ast
import gc
import json
import resource
import struct
import sys
from collections.abc import Iterator


def main() -> None:
    """Print a line for each source, up to the first that cannot be parsed."""
    memory, seconds, *wanted = sys.argv[1:]
    limits = {"RLIMIT_CORE": 0, "RLIMIT_AS": int(memory), "RLIMIT_CPU": int(seconds)}
    for name, limit in limits.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (most, most))
    gc.disable()  # A tree has millions of nodes and no cycles.
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    request = sys.stdin.buffer.read()
    at = 0
    while at < len(request):
        (size,) = struct.unpack_from("<L", request, at)
        answer = _parse_one(request[at + 4 : at + 4 + size].decode("utf-8-sig"), wanted)
        at += 4 + size
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        if "error" in answer:
            break


def _parse_one(source: str, wanted: list[str]) -> dict[str, object]:
    try:
        tree = ast.parse(source)
        statements = list(_statements(tree))
        lines = {name: node.lineno for node in statements for name in _bound(node)}
        return {
            "classes": {name: lines[name] for name in wanted if name in lines},
            "misnamed": {name: found for name in wanted for found in _misnamed(statements, name)},
        }
    except SyntaxError as error:
        message = str(error.msg)[:200].encode("utf-8", "replace").decode()
        return {"error": message, "line": max(error.lineno or 1, 1)}
    except (MemoryError, RecursionError, ValueError) as error:
        return {"error": type(error).__name__}


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported, in order."""
    left = tree.body[::-1]
    while left:
        node = left.pop()
        if isinstance(node, ast.If):
            test = node.test
            name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
            left += node.orelse[::-1]
            left += [] if name == "TYPE_CHECKING" else node.body[::-1]
        elif isinstance(node, ast.Try | ast.TryStar):
            handled = [line for handler in node.handlers for line in handler.body]
            left += (node.body + handled + node.orelse + node.finalbody)[::-1]
        elif isinstance(node, ast.With):
            left += node.body[::-1]
        else:
            yield node


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement may bind to a class."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield from _imported(node)
    elif isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _misnamed(statements: list[ast.stmt], wanted: str) -> Iterator[tuple[str, int]]:
    """Yield name and line of classes with another name that inherit from the wanted base."""
    for node in statements:
        if isinstance(node, ast.ClassDef) and node.name != wanted:
            for base in node.bases:
                name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
                if name == f"{wanted}Base":
                    yield node.name, node.lineno


def _imported(node: ast.ImportFrom) -> Iterator[str]:
    # Tiltyard's protocol `Guardrail`, imported for annotations, is not the submission's guardrail.
    # Neither is a guardrail of `aicomp_sdk` that an attack is tested with.
    ours = node.module in ("tiltyard", "tiltyard.contracts.guardrail") and not node.level
    theirs = (node.module or "").partition(".")[0] == "aicomp_sdk" and not node.level
    for alias in node.names:
        if not theirs and not (ours and alias.name == "Guardrail"):
            yield alias.asname or alias.name


if __name__ == "__main__":
    main()
