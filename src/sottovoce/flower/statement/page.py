"""The statement: one page that a data protection officer signs or refuses, as HTML and Markdown."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sottovoce.errors import LedgerError, PrivacyError
from sottovoce.flower.site.leaving import HOME
from sottovoce.flower.site.paying import kept_in
from sottovoce.flower.statement.promise import Promise
from sottovoce.flower.statement.words import (
    Block,
    Bullets,
    Rows,
    Section,
    bound,
    collude,
    leaves,
    promised,
    purpose,
    sees,
)
from sottovoce.pages.html import document, looks, own_text, table
from sottovoce.pages.text import escaped
from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.pursefile import Purse

SHORT = 10  # a cell of so many letters is not broken
LEDGER = Path("coordinator") / "ledger.db"


@dataclass(frozen=True)
class Statement:
    """What the page says."""

    title: str
    lead: str
    sections: tuple[Section, ...]


def statement_of(promise: Promise, path: Path, now: datetime | None = None) -> Statement:
    """The statement on the study in a file, and on what lies beside it."""
    day = (now or datetime.now(UTC)).date().isoformat()
    lead = (
        f"For the data protection officer of a site that is asked to take part. Made by sottovoce "
        f"{promise.version} on {day} from the study's public constants; every number follows from "
        f"them."
    )
    if promise.draft:
        lead += (
            " **A draft:** the sites' keys are not listed yet, and are part of the study; make it "
            "again when `sites.toml` is there."
        )
    return Statement(
        f"Privacy statement: {path.absolute().parent.name}",
        lead,
        (
            purpose(promise),
            leaves(promise),
            sees(promise),
            promised(promise),
            collude(promise),
            _not_covered(promise),
            _kept(promise),
            _digests(promise, path),
            _decision(promise),
        ),
    )


def _not_covered(promise: Promise) -> Section:
    items = [
        "Taking part: who is in the study, who answered, when.",
        "What the site itself publishes: the settings it ends up with, a model trained with them.",
        "The study's constants, if somebody chose them by looking at data.",
        "Other studies on the same data: keep a purse (`sottovoce purse`), which adds them up.",
    ]
    if promise.file.cadence is None:
        items.append("Timing: how long trials take (a `cadence` in `study.toml` hides it).")
    if promise.league is None:
        items.append("The coordinator, who is trusted with the vectors.")
    else:
        items.append(
            "A site's disk that is lost or set back in the middle of a study: it may then say "
            "something a second time, with other noise, or answer for a second set."
        )
    items.append("Code: each site runs the package that it has installed, and its own objective.")
    return Section("What is not covered", (Bullets(tuple(items)),))


def _kept(promise: Promise) -> Section:
    link = (
        "vectors, until `start` has followed the run to its end or `serve` ends"
        if promise.league is None
        else "sealed packets, until `start` has followed the run to its end or `serve` ends"
    )
    ledger = "the noised sums, what was spent, the study's constants"
    if promise.league is not None:
        ledger += ", who spoke, and the signed answers"
    rows = (
        ("the site, `site/`", "its trials, what it said and heard", "until the site deletes it"),
        ("the coordinator, its ledger", ledger, "for good: it is the proof of what was spent"),
        ("the coordinator, its journal", "who answered, who was absent or refused", "as it likes"),
        ("the coordinator, its link", link, "then emptied; copies made before are out of reach"),
        ("the site, its purse", "digests of what was said, ε of all studies", "for good"),
    )
    return Section("What is kept, and how long", (Rows(("where", "what", "how long"), rows),))


def _digests(promise: Promise, path: Path) -> Section:
    study = promise.study
    q = "" if promise.participation == 1 else f", participation q = {promise.participation:g}"
    rows = [
        ("package", f"sottovoce {promise.version}"),
        ("study (fingerprint of its constants)", f"`{study.fingerprint}`"),
        (f"`{path.name}`, SHA-256", f"`{_sha256(path)}`"),
        ("method", f"`{study.method.name}`, noise z = {promise.noise:g}{q}, accountant pld"),
    ]
    if promise.league is not None:
        rows.append(("all sites' keys", f"`{promise.league.roster or 'not listed yet'}`"))
    objective = path.with_name("objective.py")
    if objective.is_file():
        rows.append(("`objective.py` here, SHA-256", f"`{_sha256(objective)}`"))
    rows += _spent(promise, path.parent)
    return Section("Versions and digests", (Rows(("what", "value"), tuple(rows)),))


def _spent(promise: Promise, folder: Path) -> list[tuple[str, str]]:
    """What has been spent so far, where this folder knows."""
    rows, delta = [], promise.file.delta
    if (folder / LEDGER).is_file():
        view = read_ledger(folder / LEDGER)
        events = [entry.release.event for entry in view.entries]
        spent = bound(epsilon(events, delta)), bound(replace_one(events, delta))
        rows.append(
            (
                f"spent so far, {len(events)} of {promise.releases} releases",
                f"ε = {spent[0]} for a site, {spent[1]} for a record; ledger `{view.head}`",
            )
        )
    kept = kept_in(folder / HOME)
    if kept is not None:
        try:
            book, mark = Purse(kept.path).look(kept.mark)
        except PrivacyError as error:
            raise LedgerError(f"what the purse holds cannot be told: {error}") from error
        spent_all = book.limits.spent(book.events)
        rows.append(
            (
                "purse, all studies on the data together",
                f"ε = {bound(spent_all.epsilon)} of {book.limits.epsilon:g} for a site, "
                f"{bound(spent_all.replace_one)} for a record, at δ = {book.limits.delta:g}; "
                f"{mark.entries} entries, `{mark.digest}`",
            )
        )
    return rows


def _decision(promise: Promise) -> Section:
    whom = "nobody but this site" if promise.league is not None else "the coordinator"
    return Section(
        "Decision",
        (
            f"☐ The site takes part: ε = {bound(promise.site.epsilon)} for the site and "
            f"{bound(promise.record.epsilon)} for a person, at δ = {promise.file.delta:g}; its "
            f"vectors without noise are seen by {whom}.   ☐ It does not.",
            "Name ______________________   Date ______________   Signature ______________________",
        ),
    )


def as_markdown(statement: Statement) -> str:
    """The page as Markdown."""
    parts = [f"# {statement.title}", statement.lead]
    for section in statement.sections:
        parts.append(f"## {section.title}")
        parts += [_markdown(block) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Bullets):
        return "\n".join(f"- {item}" for item in block.items)
    if isinstance(block, Rows):
        lines = [block.heads, tuple("---" for _ in block.heads), *block.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return block


def as_html(statement: Statement) -> str:
    """The page as one file that asks for nothing, and prints on two sheets."""
    style = looks(own_text("sottovoce.flower.statement", "statement.css"))
    body = [
        f"<h1>{escaped(statement.title)}</h1>",
        f'<p class="lead">{_inline(statement.lead)}</p>',
    ]
    for section in statement.sections:
        inner = "".join(_html(block, section.title) for block in section.blocks)
        body.append(f"<section><h2>{escaped(section.title)}</h2>{inner}</section>")
    return document(escaped(statement.title), f"<main>{''.join(body)}</main>", style)


def _html(block: Block, title: str) -> str:
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in block.items)}</ul>"
    if isinstance(block, Rows):
        heads = [("", _inline(head)) for head in block.heads]
        rows = [[("short" if len(c) <= SHORT else "", _inline(c)) for c in r] for r in block.rows]
        return table(escaped(title), heads, rows, "words")
    return f"<p>{_inline(block)}</p>"


def _inline(text: str) -> str:
    """Escaped first: names come from a file."""
    safe = re.sub(r"`([^`]*)`", r"<code>\1</code>", escaped(text))
    return re.sub(r"\*\*([^*]*)\*\*", r"<strong>\1</strong>", safe)


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error}") from error
