"""HTTP by a parser in machine code, where it is installed: a third of what one in Python takes."""

from __future__ import annotations

from typing import Any

__all__ = ["MOST_HEAD", "quick_protocol"]

#: Bytes of a request besides its body, as h11 has it.
MOST_HEAD = 1 << 16


def quick_protocol() -> type[Any] | None:
    """uvicorn's protocol on httptools, with an end to what it takes; None where that is not installed."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return None

    class Bounded(HttpToolsProtocol):
        """Closes connections whose headers or trailers do not end: their parser would keep them all."""

        _chunk = _since = 0  # bytes that just came; that came since a message began, or went on with its body

        def on_message_begin(self) -> None:
            self._since = -self._chunk
            super().on_message_begin()

        def on_body(self, body: bytes) -> None:
            self._since = -self._chunk
            super().on_body(body)

        def data_received(self, data: bytes) -> None:
            self._chunk = len(data)
            super().data_received(data)
            self._since += len(data)
            if self._since > MOST_HEAD:
                self.transport.close()

    return Bounded
