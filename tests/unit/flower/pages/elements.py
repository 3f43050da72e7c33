"""A page taken apart."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = ("meta", "link", "br", "img", "input", "hr")


class Elements(HTMLParser):
    """Opening and closing tags in balance, and the text outside style sheets."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data + " "


def words(page: str) -> str:
    """All that can be read on a page."""
    return " ".join(Elements(page).text.split())
