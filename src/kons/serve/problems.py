"""What a request is answered that cannot be served: RFC 9457, in words that name the column."""

from __future__ import annotations

from typing import Any

from kons.errors import KonsError

__all__ = ["Problem"]

TITLES = {
    400: "not a request",
    401: "no token",
    403: "not allowed",
    404: "unknown",
    405: "another method",
    408: "too slow",
    409: "in conflict with what was said before",
    413: "too large",
    415: "another content type",
    422: "cannot be learned from",
    429: "too many requests wait",
    500: "a bug",
    503: "not now",
}


class Problem(KonsError):  # noqa: N818 - the word of RFC 9457
    """A request is refused, and changed nothing."""

    status: int
    column: str | None

    def __init__(self, status: int, detail: str, *, column: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.column = status, column

    def document(self) -> dict[str, Any]:
        """As ``application/problem+json``."""
        told = {"type": "about:blank", "title": TITLES[self.status], "status": self.status}
        return told | {"detail": str(self)} | ({} if self.column is None else {"column": self.column})
