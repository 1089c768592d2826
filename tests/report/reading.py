"""A page as a strict reader sees it: its tags, ids, texts, and what it would fetch."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "hr", "input", "source"}
FETCHING = {"src", "srcset", "href", "xlink:href", "data", "action", "poster", "background", "formaction"}


class Page(HTMLParser):
    """Raises on tags that do not nest; collects the rest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag, attributes):
        self._seen(tag, attributes)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self._seen(tag, attributes)

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        for tag in self._open:
            self.words.setdefault(tag, []).append(data)

    def _seen(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            value = value or ""
            self.attributes.append((tag, name, value))
            if name == "id":
                self.ids.append(value)
            if name in FETCHING and value.startswith("#"):
                self.references.append(value[1:])
            self.references += re.findall(r"url\(#([^)]*)\)", value)

    @property
    def fetched(self) -> list[str]:
        """All that a browser would ask somebody for."""
        found = [v for _, name, v in self.attributes if name in FETCHING and not v.startswith("#")]
        found += [v for _, name, v in self.attributes if re.search(r"url\((?!#)", v)]
        css = "".join(self.words.get("style", []))
        found += re.findall(r"url\([^)]*\)|@import[^;]*", css)
        return found + [
            tag for tag in self.tags if tag in ("script", "link", "iframe", "object", "embed", "base")
        ]

    def text(self, tag: str = "body") -> str:
        """What a person reads inside a tag, on one line."""
        return " ".join(" ".join(self.words.get(tag, [])).replace("\N{NO-BREAK SPACE}", " ").split())
