"""A site's own log, in its folder: errors with all their circumstances, which stay there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOG = "site.log"


@contextmanager
def site_log(folder: Path) -> Iterator[logging.Logger]:
    """The site's own log, which nothing else writes to and nothing else repeats."""
    log = logging.Logger("sottovoce.site")
    handler = logging.FileHandler(folder / LOG, delay=True, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        yield log
    finally:
        handler.close()


def log_error(folder: Path, error: Exception) -> None:
    """Write an error down with all its circumstances, which stay at the site."""
    with suppress(OSError), site_log(folder) as log:
        log.error("%s", error, exc_info=error)
