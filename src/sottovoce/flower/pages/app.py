"""Live pages as a web app: a page for each party, and a stream of what it shows now."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.routing import Route

from sottovoce.flower.pages.guard import Guard
from sottovoce.flower.pages.live import Shown, events_path, navigation
from sottovoce.flower.pages.watcher import Watcher
from sottovoce.pages.html import document, looks, own_text, policy
from sottovoce.pages.text import escaped

LOOK = 1.0  # seconds between two looks at the disk
BEAT = 3.0  # seconds until a page is told that nothing changed
AGAIN = 1000  # milliseconds after which a browser connects again
_HERE = "sottovoce.flower.pages"


def make_app(folder: Path, host: str, key: str, closing: threading.Event) -> Guard:
    """The app that watches a folder; streams end once it is `closing`."""
    watcher = Watcher(folder)

    async def page(request: Request) -> HTMLResponse:
        name = request.path_params.get("name")
        shown = await to_thread.run_sync(watcher.shown, name)
        style, script = live_looks()
        allowed = policy(style, script, "'self'") + "; frame-ancestors 'none'"
        text = live_document(shown, watcher.names(), name)
        return HTMLResponse(text, headers={"Content-Security-Policy": allowed})

    async def events(request: Request) -> StreamingResponse:
        stream = changes(watcher, request.path_params.get("name"), closing)
        return StreamingResponse(stream, media_type="text/event-stream")

    routes = [
        Route("/", page),
        Route("/events", events),
        Route("/party/{name}", page),
        Route("/party/{name}/events", events),
    ]
    return Guard(Starlette(routes=routes), host, key)


async def changes(
    watcher: Watcher, name: str | None, closing: threading.Event
) -> AsyncIterator[str]:
    """What a page shows, as server-sent events: whole, whenever it changed."""
    yield f"retry: {AGAIN}\n\n"
    last: tuple[Shown, str] | None = None
    told = 0.0
    while not closing.is_set():
        now = await to_thread.run_sync(_now, watcher, name)
        if now != last:
            shown, links = now
            yield _event("shown", title=shown.title, said=shown.said, main=shown.main, links=links)
        elif time.monotonic() - told > BEAT:
            yield _event("beat")
        else:
            await asyncio.sleep(LOOK)
            continue
        last, told = now, time.monotonic()


def _now(watcher: Watcher, name: str | None) -> tuple[Shown, str]:
    return watcher.shown(name), _links(watcher.names(), name)


def _links(names: list[str], name: str | None) -> str:
    return navigation(names, name or (names[0] if names else ""))


def _event(kind: str, **content: str) -> str:
    return f"event: {kind}\ndata: {json.dumps(content)}\n\n"


def live_looks() -> tuple[str, str]:
    """The style sheet and the script of live pages."""
    style = looks(own_text(_HERE, "party.css"), own_text(_HERE, "live.css"))
    return style, own_text(_HERE, "live.js")


def live_document(shown: Shown, names: list[str], name: str | None) -> str:
    """The page with what it shows at first; its script puts newer states in its place."""
    style, script = live_looks()
    body = f"""<a class="skip" href="#main">Skip to the page</a>
<div class="bar-top"><div id="links">{_links(names, name)}</div>
<p id="state" data-state="still" data-events="{events_path(name)}">Not live yet</p></div>
<p id="said" class="unseen" role="status"></p>
<noscript><p class="notice unsure">Without scripts this page stays as it is: load it again to see
more.</p></noscript>
<main id="main" tabindex="-1">
{shown.main}
</main>
<footer><p>Made by <code>sottovoce watch</code> from what is on this disk. It asks nothing of the
study’s processes, and nothing on this page comes from the network, or goes there.</p></footer>"""
    return document(escaped(shown.title), body, style, script, policy(style, script, "'self'"))
