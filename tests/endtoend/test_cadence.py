"""A fixed cadence, with real processes: what others see does not tell how long a trial took."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from tests.endtoend.federation import SMALL, Federation, Plan

from sottovoce.flower.coordinator.coordinator import GRACE

CADENCE, SLOW = 10.0, 8.0  # seconds of a trial, as agreed on; and as one site needs them


@pytest.mark.slow  # about two minutes, all of them the cadence's
def test_with_a_cadence_neither_steps_nor_replies_tell_who_was_slow(tmp_path: Path) -> None:
    settings = f"{SMALL}\ninitial = 2\ncadence = {CADENCE}"
    with Federation(tmp_path, Plan(rounds=2, settings=settings)) as fed:
        slow = fed.stage.sites[1]
        (fed.folder(slow) / "seconds").write_text(json.dumps({"all": SLOW}))
        fed.submit()
        assert fed.finish().well
        lines = [{**x, "at": datetime.fromisoformat(x["time"]).timestamp()} for x in fed.journal]
    opened = {x["round"]: x["at"] for x in lines if x["event"] == "opened"}
    over = [x for x in lines if x["event"] in ("closed", "finished")]
    assert len(over) == 3
    assert [x["absent"] for x in over if x["absent"] > 1] == []  # a busy machine may lose one
    for line, trials in zip(over, (2, 1, 1), strict=True):
        number, began = line["round"], opened[line["round"]]
        # a step ends at a time that was known when it began
        assert trials * CADENCE + GRACE - 1 <= line["at"] - began < trials * CADENCE + GRACE + 8
        came = [x["at"] for x in lines if x["event"] == "answered" and x["round"] == number]
        assert len(came) == 3 - line["absent"]
        assert min(came) - began >= trials * CADENCE - 1
        # two trials of the slow site take 16 seconds, one takes 8; those of the others nothing
        assert max(came) - min(came) < SLOW
