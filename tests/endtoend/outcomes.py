"""What came of a fault, and the page of all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HEAD = """\
# Faults, and what comes of them

Each line below is what happened to real processes on one machine: a SuperLink, a coordinator and
three sites, with TLS, node keys and real noise, running a study whose sites speak in every round
(`dp-fts-de`; where a line says so, `sottovoce`). With trust nobody there are five sites, all of
them members of the committee, or five sites and three aggregators. The page was made by

```sh
python -m tests.endtoend.faults FOLDER --kills {kills} --jobs JOBS --write docs/faults.md
```

whose studies took {minutes:.0f} minutes, added up; several can run side by side.{earlier}

After every study all of this held, or the script would have failed:
- every round of the study is released, each once, and the ledger verifies;
- ε is that of as many rounds as were released, and within the budget;
- every broadcast that a site has stored is the ledger's, byte for byte: no round was sent twice
  with fresh noise; after each kill, what the ledger held before is still in it, unchanged;
- with trust nobody, the ledger notes one set of speakers of each round, and every member that
  answered did so for that set, with the very share that the ledger notes of it;
- every trial that an objective finished, as the objective itself noted in a file of its own, is in
  the site's Optuna storage, once, with its value; or it was under way when its process was killed;
- no trial ran twice for one slot but those that were killed.

| fault | what was done | what happened | ε spent of granted | rounds released |
|---|---|---|---|---|
"""
TAIL = """
What an operator does:
- A site that died is started again by `sottovoce join`. For up to a minute after a kill Flower
  takes the old SuperNode to be there, and refuses the new one, which then ends; `join` starts it
  again for 90 seconds, until it is let in. The site is called again in the round that is open then.
- A coordinator that died is started again by `sottovoce start`; if it was its SuperLink, by
  `sottovoce serve` and then `sottovoce start`. The new run goes on where the ledger ends. Sites
  connect again by themselves.
- A site that is away counts as zero; the round's noise, and its ε, are the same. If all are away
  the run stops, with nothing released and nothing spent; `sottovoce start` goes on.
- A run that stops since a site has heard a round that the ledger does not hold: the ledger is an
  old one. Put the newest `ledger.db` and `ledger.db.head` back, and `sottovoce start` goes on; if
  they are lost, the study is over: what it has spent can no longer be told. Nothing proves a site
  wrong that makes this up, so it is believed; the journal names it, under `ahead`. To go on without
  it, unregister its node: `flwr supernode unregister NODE federation`, with NODE from `sites.toml`,
  which stays as it is.
- A site that says a round was broadcast before with other content takes no further part in the
  study, whatever it is sent: two releases of that round are out.
- A study that more than half of its sites have left, or refused, stops before its next release, and
  spends nothing for it (journal: `stopped`). A site counts as gone from when it says so until it is
  there again; one that is only absent does not. The rule looks at who is there, never at what was
  said ([privacy.md](privacy.md)).
- A site whose trials have all failed leaves before it speaks. The coordinator learns that it left
  (journal: `left`), and counts it as away; its operator sees the error, as `join` ends with it and
  status 2, and it is in `site/left.txt`. With `objective.py` mended, `sottovoce join` takes part
  again: it begins with the initial trials. If all sites leave, nothing is released, or spent.
"""
EARLIER = " Of the\nlines below {left} are of an earlier run, whose studies are not among these."


@dataclass(frozen=True)
class Row:
    """One fault, and what came of it."""

    fault: str
    done: str  # empty: just that, while a study ran
    happened: str
    epsilon: float
    granted: float
    rounds: int

    def line(self) -> str:
        """Its line of the table."""
        spent = f"{self.epsilon:.5g} of {self.granted:.4g}"
        cells = [
            self.fault,
            self.done or "once, while a study ran",
            self.happened,
            spent,
            str(self.rounds),
        ]
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def say(text: str) -> None:
    """Tell whoever watches."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def keep(path: Path, scenario: str, came: Any, seconds: float, kills: int) -> None:
    """Keep what came of a job: rows of the table, or kills."""
    found: dict[str, Any] = {"scenario": scenario, "seconds": round(seconds, 1), "kills": kills}
    if isinstance(came, list):
        found["rows"] = [asdict(row) for row in came]
    else:
        found["came"] = asdict(came)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1))
    part.replace(path)


def kept(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What came of all jobs that a folder holds, by scenario."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        found.setdefault(content["scenario"], []).append(content)
    return found


def page(
    rows: list[Row], kills: int, seconds: float, before: str = "", first: Sequence[str] = ()
) -> str:
    """The page of these lines, and of those that it had of other faults.

    first: faults whose lines begin the table, in their order.
    """
    new = {row.fault: row.line() for row in rows}
    old = {_fault(line): line for line in before.splitlines() if _told(line)}
    lines = {**old, **new}
    order = [fault for fault in first if fault in lines]
    order += [fault for fault in lines if fault not in first]
    left = len(old.keys() - new.keys())
    earlier = EARLIER.format(left=left) if left else ""
    head = HEAD.format(kills=kills, minutes=seconds / 60, earlier=earlier)
    return head + "\n".join(lines[fault] for fault in order) + "\n" + TAIL


def _told(line: str) -> bool:
    """Whether a line of the page is one of a fault."""
    return line.startswith("| ") and not line.startswith("| fault |")


def _fault(line: str) -> str:
    return line.split(" | ")[0].removeprefix("| ")
