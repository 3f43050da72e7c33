"""What every test process does once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from hypothesis import HealthCheck, settings

# The first text that is drawn in a fresh clone waits for a table of all characters
settings.register_profile("any machine", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# A shell starts what runs in its background deaf to interrupts, and tests interrupt their processes
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
WHOLE = ("contract", "endtoend", "parity")  # folders


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is covered is what unit and property tests run.

    To watch each line can double the time of a whole federation; the gates are for those.
    """
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in WHOLE:
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture(scope="session", autouse=True)
def _migrations_read_once() -> Iterator[None]:
    """Optuna and Flower read the history of their tables whenever they open an SQLite file.

    It is the same each time, in tens of modules, and most of what opening one costs.
    """
    read = ScriptDirectory.from_config
    known: dict[tuple[str | None, ...], ScriptDirectory] = {}

    def from_config(config: Config) -> ScriptDirectory:
        place = tuple(map(config.get_main_option, ("script_location", "version_locations")))
        if place not in known:
            known[place] = read(config)
        return known[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", staticmethod(from_config))
        yield
