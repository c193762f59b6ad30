"""The built-in tools of Claude Code, as MCP would declare them.

The hooks of Claude Code name a tool and its arguments, and declare nothing. Tools that are not
listed here are unknown to the guardrail.
"""

from typing import Any, Final

_DESCRIPTIONS: Final = {
    "Bash": "Run a shell command.",
    "BashOutput": "Read the output of a shell command that runs in the background.",
    "KillShell": "Stop a shell command that runs in the background.",
    "Read": "Read a file.",
    "Write": "Write a file.",
    "Edit": "Edit a file: replace a text in it.",
    "MultiEdit": "Edit a file: replace several texts in it.",
    "NotebookEdit": "Edit a cell of a notebook file.",
    "Glob": "List files whose names match a pattern.",
    "Grep": "Search the content of files for a pattern.",
    "LS": "List the files of a directory.",
    "WebFetch": "Fetch a web page and read it.",
    "WebSearch": "Search the web.",
    "TodoWrite": "Note the steps of the agent's own plan.",
}
_ARGUMENTS: Final = {
    "Bash": {"command": "The shell command.", "description": "", "timeout": ""},
    "BashOutput": {"bash_id": "The id of the shell.", "filter": ""},
    "KillShell": {"shell_id": "The id of the shell."},
    "Read": {"file_path": "The path of the file.", "offset": "", "limit": ""},
    "Write": {"file_path": "The path of the file.", "content": "The content of the file."},
    "Edit": {
        "file_path": "The path of the file.",
        "old_string": "The text to replace.",
        "new_string": "The text in its place.",
        "replace_all": "",
    },
    "MultiEdit": {"file_path": "The path of the file.", "edits": "The texts to replace."},
    "NotebookEdit": {
        "notebook_path": "The path of the file.",
        "new_source": "The content of the cell.",
        "cell_id": "",
        "edit_mode": "",
    },
    "Glob": {"pattern": "The pattern of names.", "path": "The directory."},
    "Grep": {"pattern": "The pattern to search.", "path": "The path of a file or directory."},
    "LS": {"path": "The directory."},
    "WebFetch": {"url": "The URL of the page.", "prompt": "What to look for in the page."},
    "WebSearch": {"query": "The words to search."},
    "TodoWrite": {"todos": "The steps."},
}

OVERLAY: Final = """
[tool.TodoWrite]
effect = "READ"
source = "OWNER"

[tool.Edit]
args = {old_string = "CONTENT", new_string = "CONTENT", replace_all = "OPTION"}

[tool.MultiEdit]
args = {edits = "CONTENT"}

[tool.NotebookEdit]
args = {new_source = "CONTENT"}
"""
"""What inference does not see. It holds if the user has no overlay."""


def declarations() -> list[dict[str, Any]]:
    """Return the declarations of all built-in tools that are known here."""
    return [
        {
            "name": name,
            "description": text,
            "inputSchema": {
                "type": "object",
                "properties": {
                    argument: {"description": about} if about else {}
                    for argument, about in _ARGUMENTS[name].items()
                },
            },
        }
        for name, text in _DESCRIPTIONS.items()
    ]
