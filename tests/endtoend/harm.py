"""Single faults: sites that are slow, evil or strangers, and a disk without room."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.endtoend import evil
from tests.endtoend.federation import CLIENT, OBJECTIVE, Federation, Plan
from tests.endtoend.invariants import check_kept, require
from tests.endtoend.killing import finished
from tests.endtoend.outcomes import Row, say

from sottovoce.flower.deploy import superlink
from sottovoce.flower.deploy.keys import CA, PUBLIC, make_keys
from sottovoce.flower.sites import NAME as SITES

UNKNOWN = "Failed to activate SuperNode"
UNTRUSTED = "certificate verify failed"


def site_too_slow(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """One site sleeps through the time limit of round 1."""
    plan = Plan(rounds=4, trial_limit=10.0)
    with Federation(folder / "study", plan) as fed:
        slow = fed.stage.sites[1]
        (fed.folder(slow) / "seconds").write_text(json.dumps({"1": 70.0}))
        fed.submit()
        ended = fed.finish()
        require(ended.well, f"the run ended as {ended}")
        spent = finished(fed, Counter())
        (closed,) = [x for x in fed.journal if x["event"] == "closed" and x["round"] == 1]
        require(closed["absent"] == 1 and closed["spoke"] == 2, f"round 1 closed as {closed}")
        stored = fed.storage(slow)
        trials = [] if stored is None else stored.trials
        kept = [state for state, noted, _ in trials if noted.get("round") == 1]
        require(kept == ["COMPLETE"], f"its trial of round 1 is {kept}")
        done = f"sleeps for 70 s in round 1, whose limit is {fed.plan.trial_limit + 30:g} s"
        happened = "absent in that round, which counts it as zero; its trial is kept, its late "
        happened += "reply counts nowhere; it takes part again"
        return [Row("A site is slow", done, happened, spent, plan.epsilon, fed.released)]


def client_dies(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """The process of a trial dies, and nobody starts anything again."""
    plan = Plan(rounds=6, trial_limit=10.0)
    with Federation(folder / "study", plan) as fed:
        name, first = fed.stage.sites[1], fed.stage.study.steps[0].trials
        (fed.folder(name) / "seconds").write_text(json.dumps({"1": 15.0}))
        fed.submit()
        fed.wait(lambda: len(fed.noted(name)) > 2 * first, "its trial of round 1 has begun")
        require(fed.kill_party(name, CLIENT) == 1, "there was no ClientApp to kill")
        ended = fed.finish(900)
        require(ended.well, f"the run ended as {ended}")
        spent = finished(fed, Counter({name: 1}))
        away = sum(x["absent"] for x in fed.journal if x["event"] == "closed")
        require(1 <= away <= 4, f"it was absent in {away} rounds")
        happened = f"absent in {away} of the rounds, until Flower notices; then it takes part again"
        done = "`kill -9` in the trial of round 1"
        fault = "A site's ClientApp dies, its SuperNode lives"
        return [Row(fault, done, happened, spent, plan.epsilon, fed.released)]


def site_is_evil(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """One site plays a trick in each round; another sends everything twice."""
    plan = Plan(rounds=len(evil.TRICKS), trial_limit=15)
    fed = Federation(folder / "study", plan)
    liar, doubler = fed.stage.sites[0], fed.stage.sites[2]
    (fed.folder(liar) / "objective.py").write_text(evil.objective(OBJECTIVE))
    (folder / "evil").mkdir()
    (folder / "evil" / "sitecustomize.py").write_text(evil.NODE)
    fed.environments[doubler] = {"PYTHONPATH": str(folder / "evil")}
    with fed:
        fed.submit()
        ended = fed.finish(900)
        require(ended.well, f"the run ended as {ended}")
        spent, rows = finished(fed, Counter()), []
        require("secret data" not in str(fed.journal), "a site's words are in the journal")
        for number, trick in enumerate(evil.TRICKS):
            lines = [x for x in fed.journal if x["round"] == number and x.get("agent") == 0]
            found = [x for x in lines if x["event"] == trick.event and trick.reason in x["reason"]]
            require(bool(found), f"no line of {trick.name} in {lines}")
            (closed,) = [x for x in fed.journal if x["event"] == "closed" and x["round"] == number]
            spoke = 2 + trick.there - (number == evil.UNFINISHED)
            require(closed["spoke"] == spoke, f"{trick.name}: round {number} closed as {closed}")
            happened = f"{trick.event}: “{found[0]['reason']}”; the others' vectors are counted"
            rows.append(
                Row(f"A site sends {trick.name}", "", happened, spent, plan.epsilon, fed.released)
            )
        said = fed.printed(doubler)
        require(said.count("EVIL: sent again") >= plan.rounds - 1, "it did not send replies twice")
        require("EVIL: not uploaded" in said, "it uploaded everything")
        end = (spent, plan.epsilon, fed.released)
        once = "each is counted once: Flower keeps one reply to a call"
        alone = "absent in that round; the others are not kept waiting beyond its limit"
        fault = "A site announces a reply and never uploads it"
        return [
            *rows,
            Row("A site sends replies twice", "", once, *end),
            Row(fault, "", alone, *end),
        ]


def strangers(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """Nodes that have no business here try to take part while a study runs."""
    plan = Plan(rounds=2)
    with Federation(folder / "study", plan) as fed:
        for name in ("unregistered", "unlisted", "elsewhere"):
            fed.add_folder(name)
        fed.start_site("unregistered", key=fed.add_key("unregistered"))
        make_keys(folder / "others", [])
        fed.start_site("elsewhere", key=fed.add_key("elsewhere"), root=folder / "others" / CA)
        sites = (fed.hub / SITES).read_text()
        key = fed.add_key("unlisted")
        superlink.register_sites(fed.hub, fed.stage.link, [key.with_suffix(PUBLIC)])
        (fed.hub / SITES).write_text(sites)
        fed.start_site("unlisted", key=key)
        fed.submit()
        ended = fed.finish()
        require(ended.well, f"the run ended as {ended}")
        spent = finished(fed, Counter())
        for name in ("unregistered", "unlisted", "elsewhere"):
            require(fed.storage(name) is None and not fed.noted(name), f"{name} took part")
        online = list(superlink.node_status(fed.hub).values()).count("online")
        require(online == plan.sites + 1, f"{online} nodes are online")
        require("SuperNode ID" in fed.printed("unlisted"), "unlisted did not connect")
        for name, words in (("unregistered", UNKNOWN), ("elsewhere", UNTRUSTED)):
            require("SuperNode ID" not in fed.printed(name), f"{name} connected")
            require(words in fed.printed(name), f"{name} did not say {words!r}")
        end = (spent, plan.epsilon, fed.released)
        return [
            Row("A node's key was never registered", "", f"refused: “{UNKNOWN}”", *end),
            Row(
                "A registered node is not in sites.toml",
                "",
                "it connects, and is never called",
                *end,
            ),
            Row("A site trusts another authority", "", f"it does not connect: “{UNTRUSTED}”", *end),
        ]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A disk of its own for a folder; needs root."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def disk_full(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """The disk of the ledger is full in the middle of a study, and has room again later."""
    plan = Plan(rounds=3)
    fed = Federation(folder / "study", plan)
    fed.state.mkdir()
    with small_disk(fed.state, "256k"), fed:
        fed.submit()
        fed.wait(lambda: fed.released >= 1, "a round is released")
        filler = fed.state / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1024))
            except OSError:
                say(f"the disk is full: {shutil.disk_usage(fed.state).free} bytes are free")
        before = fed.ledger
        ended = fed.finish()
        require(ended.over and not ended.well, f"the run ended as {ended}")
        say(f"the run ended as {ended}")
        require("so it is not sent" in ended.details, f"the run ended as {ended}")
        after = fed.ledger
        check_kept(before, after)
        heard = {len(sent(fed, name)) for name in fed.stage.sites}
        require(max(heard) <= len(before.entries), f"sites heard {heard} rounds")
        filler.unlink()
        fed.submit()
        ended = fed.finish()
        require(ended.well, f"the run ended as {ended}")
        check_kept(after, fed.ledger)
        spent = finished(fed, Counter())
        happened = "the run stops, saying that the round is not sent, and nothing was sent; with "
        happened += "room again, a new run goes on from the ledger"
        done = "filled to the last byte after a release"
        return [Row("The ledger's disk is full", done, happened, spent, plan.epsilon, fed.released)]


def backup_restored(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """An old backup of the ledger and its head is put in place after the study's end."""
    plan = Plan(rounds=3)
    with Federation(folder / "study", plan) as fed:
        fed.submit()
        fed.wait(lambda: fed.released >= 1, "a round is released")
        _copy_ledger(fed.state, folder / "old")
        held = fed.released
        ended = fed.finish()
        require(ended.well, f"the run ended as {ended}")
        _copy_ledger(fed.state, folder / "newest")
        _copy_ledger(folder / "old", fed.state)
        require(fed.released < plan.rounds, "the backup is not old")
        fed.submit()
        ended = fed.finish()
        require(ended.over and not ended.well, f"the run ended as {ended}")
        require("which this ledger does not hold" in ended.details, f"the run ended as {ended}")
        require(fed.released == held, "something was released")
        _copy_ledger(folder / "newest", fed.state)
        fed.submit()
        ended = fed.finish()
        require(ended.well, f"the run ended as {ended}")
        spent = finished(fed, Counter())
        happened = (
            "the sites refuse to speak, and say what they have heard; the run stops with the "
        )
        happened += "site's name, nothing is released; with the newest ledger in place, all is well"
        fault = "An old backup of the ledger and its head is restored"
        done = "after the study's end, the files of its first round"
        return [Row(fault, done, happened, spent, plan.epsilon, fed.released)]


def _copy_ledger(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in ("ledger.db", "ledger.db.head"):
        shutil.copy2(source / name, target / name)


def sent(fed: Federation, name: str) -> list[str]:
    """The rounds of which a site has got the broadcast."""
    stored = fed.storage(name)
    attrs = {} if stored is None else stored.attrs
    return [key for key in attrs if key.startswith("broadcast-")]
