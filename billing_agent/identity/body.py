"""A request's body: read once within a limit, parsed strictly, replayed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from billing_agent.errors import RequestRefused
from billing_agent.identity.metadata import DEPTH_LIMIT
from billing_agent.refusals import BodyTooLarge, BodyUnreadable, id_of

if TYPE_CHECKING:
    from starlette.types import Message, Receive

    from billing_agent.refusals import RequestId

# How much of a body is looked at for the id that a refusal answers with.
_ID_WITHIN = 64 * 1024


class ClientGone(Exception):
    """The client left before its body was complete."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_decoder = json.JSONDecoder(parse_constant=_no_constant)
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
# Escapes that may stand for text no store can hold; only then is each string read.
_SUSPICIOUS = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def decode(body: bytes) -> Any:
    """Return the JSON document in a body.

    It is as strict as RFC 8259, so that no reader behind can see another document.

    Raises:
        BodyUnreadable: it is not UTF-8, not JSON, or has NaN in it.
        RequestRefused: nested too deeply, or a string (key or value) has U+0000 or
            half a surrogate pair, which no store can hold.
    """
    try:
        text = body.decode()
        document = _decoder.decode(text)
    except RecursionError:
        raise RequestRefused("nested too deeply") from None
    except ValueError:
        raise BodyUnreadable from None
    if text.count("[") + text.count("{") > DEPTH_LIMIT:
        _check_depth(document)
    if _SUSPICIOUS.search(text):
        _check_text(document)
    return document


def encode(document: Any) -> bytes:
    """Return a document's JSON, its text as it was sent.

    Raises:
        RequestRefused: a number is beyond what JSON readers hold.
    """
    try:
        return _encoder.encode(document).encode()
    except ValueError:
        raise RequestRefused("a number is too large") from None


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEPTH_LIMIT + 1):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise RequestRefused("nested too deeply")


def _check_text(document: Any) -> None:
    waiting = [document]
    while waiting:
        node = waiting.pop()
        waiting += _children(node)
        texts = node if isinstance(node, dict) else [node]
        if any(isinstance(text, str) and _UNSTORABLE.search(text) for text in texts):
            raise RequestRefused("text has U+0000 or half a surrogate pair")


class Body:
    """The body behind an ASGI ``receive``.

    Args:
        receive: the request's.
        limit: bytes it may have.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._content: bytes | None = None
        self._document: Any = None

    async def read(self, limit: int | None = None) -> bytes:
        """Return the whole body.

        What is beyond the limit is read and dropped: a server that answers and
        closes with bytes unread resets the connection, and the client would never
        see the answer.

        Raises:
            BodyTooLarge: it has more bytes than ``limit``, or than the body's own.
            ClientGone: the client left.
        """
        if self._content is None:
            limit = self._limit if limit is None else limit
            chunks, size, more = [], 0, True
            while more:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                chunk = message.get("body", b"")
                size += len(chunk)
                if size <= limit:
                    chunks.append(chunk)
                more = message.get("more_body", False)
            if size > limit:
                self._content = b""
                raise BodyTooLarge(limit)
            self._content = b"".join(chunks)
        return self._content

    async def document(self) -> Any:
        """Return the JSON document in the body; see ``decode``."""
        self._document = decode(await self.read())
        return self._document

    async def request_id(self) -> RequestId:
        """Return the JSON-RPC id that a refusal answers with, None when unclear."""
        try:
            document = self._document or json.loads(await self.read(_ID_WITHIN))
        except (RequestRefused, RecursionError, ValueError):
            return None
        return id_of(document)

    def replayed(self, content: bytes) -> Receive:
        """Return a ``receive`` that gives ``content``, then what the server gives."""
        messages: list[Message] = [
            {"type": "http.request", "body": content, "more_body": False}
        ]

        async def receive() -> Message:
            return messages.pop() if messages else await self._receive()

        return receive
