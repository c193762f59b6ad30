"""What a client may see of an MCP server's answers over HTTP."""

from tiltyard.bridges.guard import answers
from tiltyard.bridges.guard.frames import RefusedError, parse
from tiltyard.bridges.guard.gate import Gate
from tiltyard.bridges.guard.http_parts import check_lines
from tiltyard.bridges.guard.stdio import warn


def inspected_body(gate: Gate, body: bytes, status: int) -> bytes:
    """Return the body of an answer as the client may see it."""
    try:
        message = parse(body, one_line=False)
    except RefusedError as refused:
        if status >= 400:
            return body  # An error of HTTP, not a message.
        warn(f"an answer of the server was not forwarded: {refused.why}")
        told = gate.refused_by_gate(refused).to_client
        why = f"the server's answer was not forwarded: {refused.why}"
        return told or answers.error(None, answers.INTERNAL_ERROR, why)
    return gate.from_server(message).to_client or b""


def inspected_event(gate: Gate, event: bytes) -> bytes:
    """Return an event as the client may see it; empty to drop it."""
    lines = event.replace(b"\r\n", b"\n").split(b"\n")
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    if not data.strip():
        return event if b"\r" not in event.replace(b"\r\n", b"\n") else b""
    try:
        check_lines(lines)
        message = parse(data, one_line=False)
    except RefusedError as refused:
        warn(f"an event of the server was not forwarded: {refused.why}")
        told = gate.refused_by_gate(refused).to_client
        return b"event: message\ndata: " + told + b"\n\n" if told else b""
    outcome = gate.from_server(message)
    if outcome.to_client is None or outcome.to_client == data:
        return event if outcome.to_client else b""
    others = [line for line in lines if line and not line.startswith(b"data:")]
    return b"\n".join([*others, b"data: " + outcome.to_client, b"", b""])


def data_of(event: bytes) -> bytes:
    """Return the data of an event that the guard itself reads."""
    lines = event.replace(b"\r\n", b"\n").split(b"\n")
    return b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
