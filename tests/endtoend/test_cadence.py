"""A fixed cadence, with real processes: what others see does not tell how long a trial took."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path

import pytest
from tests.endtoend.federation import CLIENT, SMALL, Federation, Plan

from sottovoce.flower.coordinator.coordinator import GRACE

CADENCE, SLOW = 10.0, 8.0  # seconds of a trial, as agreed on; and as one site needs them


@pytest.mark.slow  # about two minutes, all of them the cadence's
def test_with_a_cadence_neither_steps_nor_replies_tell_who_was_slow(tmp_path: Path) -> None:
    settings = f"{SMALL}\ninitial = 2\ncadence = {CADENCE}"
    with Federation(tmp_path, Plan(rounds=2, settings=settings)) as fed:
        slow = fed.stage.sites[1]
        (fed.folder(slow) / "seconds").write_text(json.dumps({"all": SLOW}))
        fed.submit()
        fed.wait(lambda: fed.counted("opened") > 0, "the first step is open")
        began: dict[str, float] = {}
        ended: dict[str, float] = {}  # when what answers for a site in the first step was seen last
        while fed.counted("closed") == 0:
            for name in fed.stage.sites:
                if fed.alive(fed.folder(name), CLIENT):
                    began.setdefault(name, time.monotonic())
                    ended[name] = time.monotonic()
            time.sleep(0.1)
        assert fed.finish().well
        lines = fed.journal
        spans = {name: ended[name] - began[name] for name in fed.stage.sites}
    # two trials of the slow site take 16 seconds, those of the others nothing
    assert all(2 * CADENCE <= span < 2 * CADENCE + 10 for span in spans.values()), spans
    assert max(spans.values()) - min(spans.values()) < SLOW, spans
    opened = {
        x["round"]: datetime.fromisoformat(x["time"]) for x in lines if x["event"] == "opened"
    }
    over = [x for x in lines if x["event"] in ("closed", "finished")]
    assert [x["absent"] for x in over] == [0, 0, 0]
    for line, trials in zip(over, (2, 1, 1), strict=True):
        took = (datetime.fromisoformat(line["time"]) - opened[line["round"]]).total_seconds()
        assert trials * CADENCE + GRACE - 1 <= took < trials * CADENCE + GRACE + 8
