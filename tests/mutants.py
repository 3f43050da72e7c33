"""Breaks the privacy code on purpose, one line at a time, and sees that the tests notice.

    python tests/mutants.py            # all of them
    python tests/mutants.py seed noise  # those with one of the words in their name or file

Each mutant is a copy of the package with one replacement; the privacy tests must fail on it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# the tests of the file that is broken; pytest stops at the first failure
TESTS = {
    "privacy/release.py": ("tests/unit/privacy/test_release.py",),
    "privacy/noise.py": (
        "tests/unit/privacy/test_noise.py",
        "tests/unit/privacy/test_release.py",
        "tests/unit/privacy/test_shared_noise.py",
    ),
    "privacy/notes.py": ("tests/unit/privacy/test_notes.py",),
    "flower/coordinator/secure.py": ("tests/unit/flower/coordinator/test_secure.py",),
    "flower/site/summing.py": ("tests/unit/flower/coordinator/test_secure.py",),
    "flower/sites.py": ("tests/unit/flower/test_sites.py",),
    "privacy/events.py": ("tests/unit/privacy/test_shared_noise.py",),
    "secure_sum/field.py": ("tests/property/test_secure_sum.py",),
    "secure_sum/sharing.py": ("tests/property/test_secure_sum.py",),
    "secure_sum/grid.py": ("tests/property/test_secure_sum.py",),
    "secure_sum/protocol.py": ("tests/property/test_secure_sum.py",),
    "secure_sum/terms.py": ("tests/unit/secure_sum/test_terms.py",),
    "secure_sum/keys.py": (
        "tests/unit/secure_sum/test_keys.py",
        "tests/property/test_secure_sum.py",
    ),
    "privacy/accountant.py": (
        "tests/unit/privacy/test_accountant.py",
        "tests/unit/privacy/test_replace_one.py",
        "tests/unit/privacy/test_shared_noise.py",
    ),
    "privacy/budget.py": ("tests/unit/privacy/test_budget.py",),
    "privacy/chain.py": ("tests/unit/privacy/test_ledger.py",),
    "privacy/ledger.py": ("tests/unit/privacy/test_ledger.py",),
    "privacy/head.py": ("tests/unit/privacy/test_ledger.py", "tests/unit/privacy/test_purse.py"),
    "privacy/purse.py": ("tests/unit/privacy/test_purse.py", "tests/property/test_purse.py"),
    "privacy/pursefile.py": ("tests/unit/privacy/test_purse.py", "tests/property/test_purse.py"),
    "federation/server.py": ("tests/unit/federation/test_server.py", "tests/endtoend/test_kill.py"),
    "federation/messages.py": (
        "tests/unit/federation/test_messages.py",
        "tests/unit/federation/test_searcher.py",
        "tests/unit/flower/site/test_site.py",
    ),
    "flower/site/site.py": (
        "tests/unit/flower/site/test_replies.py",
        "tests/endtoend/test_leaving.py",
        "tests/unit/flower/site/test_site.py",
        "tests/unit/flower/site/test_paying.py",
    ),
    "flower/site/paying.py": ("tests/unit/flower/site/test_paying.py",),
    "flower/site/memory.py": ("tests/unit/flower/site/test_site.py",),
    "flower/coordinator/coordinator.py": (
        "tests/endtoend/test_backup.py",
        "tests/unit/flower/coordinator/test_coordinator.py",
    ),
    "flower/site/app.py": ("tests/unit/flower/site/test_app.py",),
    "flower/site/trying.py": ("tests/unit/flower/site/test_site.py",),
    "flower/statement/promise.py": ("tests/unit/flower/statement/test_statement.py",),
}


@dataclass(frozen=True)
class Mutant:
    """What is broken, where, and how."""

    what: str
    file: str
    old: str
    new: str


RELEASE, ACCOUNTANT = "privacy/release.py", "privacy/accountant.py"
LEDGER, NOISE, BUDGET = "privacy/ledger.py", "privacy/noise.py", "privacy/budget.py"
SERVER, HEARD = "federation/server.py", "federation/messages.py"
CHAIN, EVENTS = "privacy/chain.py", "privacy/events.py"
HEAD, PURSE, PURSEFILE = "privacy/head.py", "privacy/purse.py", "privacy/pursefile.py"
FIELD, SHARING, GRID = "secure_sum/field.py", "secure_sum/sharing.py", "secure_sum/grid.py"
NOTES, SECURE = "privacy/notes.py", "flower/coordinator/secure.py"
SUMMING, SITES = "flower/site/summing.py", "flower/sites.py"
SUMS, TERMS, KEYS = "secure_sum/protocol.py", "secure_sum/terms.py", "secure_sum/keys.py"
PAYING, PROMISE = "flower/site/paying.py", "flower/statement/promise.py"
SITE, MEMORY, COORDINATOR = (
    "flower/site/site.py",
    "flower/site/memory.py",
    "flower/coordinator/coordinator.py",
)

MUTANTS = [
    Mutant("two sets of speakers noted", NOTES, "PRIMARY KEY (round, kind)", "UNIQUE (digest)"),
    Mutant(
        "a changed note let through", NOTES, "if digest != entry_digest(", "if b'' == entry_digest("
    ),
    Mutant(
        "members asked before the set is noted", SECURE, "self.server.settle(note)", "str(note)"
    ),
    Mutant("a settled set forgotten", SECURE, "if noted is not None:", "if False:"),
    Mutant(
        "too few speakers settled", SECURE, "if len(self._spoken) < self.terms.fewest:", "if False:"
    ),
    Mutant(
        "changed packets taken", SECURE, 'hexdigest() != note["packets"]', 'hexdigest() == "no"'
    ),
    Mutant(
        "packets not looked at",
        SECURE,
        "check_speech(self.terms, step.round, agent, reply.packets)",
        "str()",
    ),
    Mutant("bare vectors taken", SECURE, 'if reply.answer != "sealed":', "if False:"),
    Mutant("a member answers for two sets", SUMMING, "if kept.speakers != named:", "if False:"),
    Mutant(
        "fresh noise on speaking again",
        SUMMING,
        "packets = memory.sealed(call.round)\n",
        "packets = None\n",
    ),
    Mutant(
        "packets sent before they are kept",
        SUMMING,
        "memory.seal(call.round, packets)",
        "str(packets)",
    ),
    Mutant(
        "a broadcast not added up again",
        SUMMING,
        "if not np.array_equal(broadcast",
        "if not np.shape(broadcast",
    ),
    Mutant(
        "another's keys taken for one's own",
        SITES,
        "if identity.public != self.keys[number]:",
        "if False:",
    ),
    Mutant(
        "noise of N agents counted on, not of N − k",
        EVENTS,
        "2.0**self.bits / math.sqrt(self.agents - self.unreliable)",
        "2.0**self.bits / math.sqrt(self.agents)",
    ),
    Mutant(
        "a share scaled for N agents",
        GRID,
        "math.sqrt(self.agents - self.unreliable) * (1",
        "math.sqrt(self.agents) * (1",
    ),
    Mutant("a coarse grid taken as fine", EVENTS, "self.share >= LEAST_SHARE", "True"),
    Mutant("missing shares of noise not missed", EVENTS, "reliable / (self", "1 / 1 + 0 * (self"),
    Mutant(
        "no clipping before the grid", GRID, "clipped(vector[None, :], limit)", "vector[None, :]"
    ),
    Mutant("rounding away from zero", GRID, "np.trunc(scaled)", "np.rint(scaled)"),
    Mutant("a long contribution let through", GRID, "check(_square(steps) <=", "check(0 <="),
    Mutant("any sum is plausible", GRID, "return _square(total) <=", "return 0 <="),
    Mutant(
        "surplus shares not looked at", SHARING, "if not _agree(shares, threshold):", "if False:"
    ),
    Mutant("too few shares taken", SHARING, "if len(members) < threshold:", "if False:"),
    Mutant(
        "coefficients of zero",
        FIELD,
        "os.urandom(8 * int(np.prod(shape)))",
        "bytes(8 * int(np.prod(shape)))",
    ),
    Mutant(
        "a product folded wrongly", FIELD, "<< np.uint64(1)  # below", "<< np.uint64(0)  # below"
    ),
    Mutant(
        "residues above the prime let in", FIELD, "if bool(np.all(residues < _P)) else None", ""
    ),
    Mutant(
        "a packet's signature not looked at",
        SUMS,
        "or not terms.keys[agent].signed(signature, content)",
        "",
    ),
    Mutant(
        "an answer's signature not looked at",
        SUMS,
        "if not terms.keys[answer.member].signed(answer.signature, said):",
        "if False:",
    ),
    Mutant(
        "a packet of any round opens",
        SUMS,
        'f"{terms.study}/{round_number}/{sender}',
        'f"{terms.study}/{sender}',
    ),
    Mutant(
        "a packet of any study opens",
        SUMS,
        'f"{terms.study}/{round_number}/{sender}',
        'f"{round_number}/{sender}',
    ),
    Mutant("a small set answered for", SUMS, "if len(speakers) < terms.fewest:", "if False:"),
    Mutant("an impossible sum opened", SUMS, "if not plausible(", "if False and plausible("),
    Mutant("any signature is good", KEYS, "self._signing.verify(signature, content)", "str()"),
    Mutant(
        "a member's share is the secret", SHARING, "np.arange(1, members + 1", "np.arange(members"
    ),
    Mutant("keys that nobody can seal to taken", KEYS, "_ANYBODY.exchange(curve)", "str(curve)"),
    Mutant("packets of any size taken", SUMS, "if len(each) != size", "if len(each) < 0"),
    Mutant(
        "a speaker named twice in a set that is answered for",
        SUMMING,
        "check_set(self._file.terms, call.speakers)",
        "str(call)",
    ),
    Mutant("coefficients of 60 bits", FIELD, ">> np.uint64(3)", ">> np.uint64(4)"),
    Mutant(
        "a speaker summed twice", SUMS, "if len(set(speakers)) != len(speakers) or not", "if not"
    ),
    Mutant("an answer good for any set", SUMS, 'b"/" + named + b"/" + hashlib', 'b"/" + hashlib'),
    Mutant("a member counted twice", SUMS, "if place[answer.member] in shares:", "if False:"),
    Mutant(
        "a packet to any member opens",
        SUMS,
        "/{sender}/{receiver}",
        "/{sender}",
    ),
    Mutant(
        "no room left for a sum", GRID, "check(longest(self, self.agents) <= ROOM", "check(True"
    ),
    Mutant(
        "one aggregator fewer is enough",
        TERMS,
        "agents + aggregators)), aggregators)",
        "agents + aggregators)), aggregators - 1)",
    ),
    Mutant(
        "more unreliable than the committee bears",
        TERMS,
        "check(1 <= self.unreliable <= most",
        "check(1 <= self.unreliable",
    ),
    Mutant(
        "an answer sent before it is kept",
        SUMMING,
        "kept = memory.answer(call.round, named, new.share, new.signature)",
        "kept = type('', (), {'speakers': named, 'share': new.share, 'signature': new.signature})",
    ),
    Mutant(
        "a party outside the committee answers",
        SUMMING,
        "if call.agent not in self._file.terms.committee.members:",
        "if False:",
    ),
    Mutant(
        "many vectors not clipped", RELEASE, "(shares[:, rows] / divisors[:, 0])", "shares[:, rows]"
    ),
    Mutant("one sharer fewer is enough", TERMS, "// 3 + 1)", "// 3)"),
    Mutant("no clipping", RELEASE, "xp.where(excess > 1, excess, xp.ones_like(excess))", "1.0"),
    Mutant(
        "clip to S, not S/√P",
        RELEASE,
        "mechanism.clip / math.sqrt(regions)\n    shares",
        "mechanism.clip\n    shares",
    ),
    Mutant(
        "NaN let through", RELEASE, "xp.where(usable, vectors, xp.zeros_like(vectors))", "vectors"
    ),
    Mutant("no look at entries", RELEASE, "squares < LARGEST**2 / 2", "squares == squares"),
    Mutant("only the first rows clipped", RELEASE, "len(places), _ROWS)", "_ROWS, _ROWS)"),
    Mutant(
        "no division by q", RELEASE, "weights * chosen / mechanism.rate(agents)", "weights * chosen"
    ),
    Mutant(
        "divided by the head count",
        RELEASE,
        "weights * chosen / mechanism.rate(agents)",
        "weights * chosen / max(chosen.mean(), 1e-9)",
    ),
    Mutant(
        "half the noise",
        RELEASE,
        "float(mechanism.noise * sensitivity",
        "float(0.5 * mechanism.noise * sensitivity",
    ),
    Mutant(
        "noise 3 % short",
        RELEASE,
        "float(mechanism.noise * sensitivity",
        "float(0.97 * mechanism.noise * sensitivity",
    ),
    Mutant("rounding of the sum not covered", RELEASE, " * (1 + rounding))", ")"),
    Mutant(
        "noise not divided by q",
        RELEASE,
        "largest * mechanism.clip / mechanism.rate(agents)",
        "largest * mechanism.clip",
    ),
    Mutant(
        "mean weight for the largest",
        RELEASE,
        "largest = float(np.max(weights))",
        "largest = float(np.mean(weights))",
    ),
    Mutant(
        "tight bound too tight",
        RELEASE,
        "np.linalg.norm(weights, axis=0)",
        "np.max(weights, axis=0)",
    ),
    Mutant(
        "no sampling",
        RELEASE,
        "chosen = sample(agents, mechanism, source)",
        "chosen = np.ones(agents, dtype=np.bool_)",
    ),
    Mutant(
        "sampling with the wrong rate",
        RELEASE,
        "source.coins(agents, mechanism.participation)",
        "source.coins(agents, mechanism.participation**2)",
    ),
    Mutant(
        "same noise for each region",
        NOISE,
        "standard_normal(values.shape)\n",
        "standard_normal(values.shape[-1])\n",
    ),
    Mutant(
        "noise drawn too narrow from the system",
        NOISE,
        "scale=scale)\n        return np.asarray(mechanism(values.ravel()",
        "scale=0.9 * scale)\n        return np.asarray(mechanism(values.ravel()",
    ),
    Mutant(
        "a share of noise drawn too narrow from the system",
        NOISE,
        "scale=scale)\n        return np.asarray(mechanism(values.tolist())",
        "scale=0.9 * scale)\n        return np.asarray(mechanism(values.tolist())",
    ),
    Mutant("shares of noise in 32 bits", NOISE, 'atom_domain(T="i64")', "atom_domain(T=int)"),
    Mutant(
        "coins from a seed, labelled as the system's",
        NOISE,
        "os.urandom(8 * count)",
        "np.random.default_rng(0).bytes(8 * count)",
    ),
    Mutant(
        "subsets from a generator that can be seeded, labelled as the system's",
        NOISE,
        "random.SystemRandom().sample",
        "random.sample",
    ),
    Mutant(
        "NumPy's noise in place of OpenDP's",
        NOISE,
        "np.asarray(mechanism(values.ravel().tolist()), dtype=float).reshape(values.shape)",
        "values + scale * np.random.default_rng().standard_normal(values.shape)",
    ),
    Mutant("coins biased", NOISE, "< probability * 2.0**53", "< 0.9 * probability * 2.0**53"),
    Mutant(
        "event claims more noise",
        RELEASE,
        "SubsampledGaussian(self.noise, rate",
        "SubsampledGaussian(2 * self.noise, rate",
    ),
    Mutant(
        "event forgets the sampling rate",
        RELEASE,
        "SubsampledGaussian(self.noise, rate",
        "SubsampledGaussian(self.noise, self.participation",
    ),
    Mutant(
        "no noise counted as private",
        RELEASE,
        "return NonPrivate(source)\n",
        "return DataFree(source)\n",
    ),
    Mutant(
        "count forgotten in moments",
        ACCOUNTANT,
        "total += count * _log_moments",
        "total += _log_moments",
    ),
    Mutant(
        "count forgotten in pld",
        ACCOUNTANT,
        "(adjacency, step)\n    for event, count in groups:",
        "(adjacency, step)\n    for event, count in ((e, 1) for e, _ in groups):",
    ),
    Mutant(
        "rounding not kept back in pld",
        ACCOUNTANT,
        "get_epsilon(delta - kept_back)",
        "get_epsilon(delta)",
    ),
    Mutant(
        "shares of noise taken to be a Gaussian",
        ACCOUNTANT,
        "measure(gaussian, delta - kept_back)",
        "measure(gaussian, delta)",
    ),
    Mutant("shares of noise counted once", ACCOUNTANT, "apart += count * event", "apart += event"),
    Mutant("exact answer rounded down", ACCOUNTANT, "found * (1 + 1e-9) + 1e-9", "found - 1e-9"),
    Mutant(
        "replacement not doubled in a fixed sample",
        ACCOUNTANT,
        "GaussianDpEvent(event.noise / 2)",
        "GaussianDpEvent(event.noise)",
    ),
    Mutant(
        "a record replaced taken as a site left out",
        ACCOUNTANT,
        "participation == 1:\n        return replace(event, noise=event.noise / 2)",
        "participation == 1:\n        return replace(event, noise=event.noise)",
    ),
    Mutant(
        "a record replaced under noise in shares taken as a site left out",
        ACCOUNTANT,
        "SharedGaussian):\n        return replace(event, noise=event.noise / 2)",
        "SharedGaussian):\n        return replace(event, noise=event.noise)",
    ),
    Mutant(
        "a record's exact answer not doubled", ACCOUNTANT, "(groups) * (1 + replaced)", "(groups)"
    ),
    Mutant(
        "a record replaced under sampling taken as a site left out",
        ACCOUNTANT,
        "relation.REPLACE_ONE if replaced else",
        "relation.REPLACE_SPECIAL if replaced else",
    ),
    Mutant(
        "a record replaced under sampling answered by all",
        ACCOUNTANT,
        "and any(map(_poisson_sampled, counts))",
        "and False",
    ),
    Mutant(
        "fixed samples counted as Poisson",
        ACCOUNTANT,
        'if event.sampling == "poisson":\n',
        "if event.sampling:\n",
    ),
    Mutant(
        "non-private taken as free",
        ACCOUNTANT,
        "return math.inf\n    return _measured(ACCOUNTANTS",
        "return 0.0\n    return _measured(ACCOUNTANTS",
    ),
    Mutant(
        "an ε that is no number let through",
        BUDGET,
        "if not after <= self.epsilon:",
        "if after > self.epsilon:",
    ),
    Mutant(
        "guard looks only at the past",
        BUDGET,
        "after = self.spent(whole)",
        "after = self.spent(list(events))",
    ),
    Mutant(
        "noise rounded down",
        BUDGET,
        "math.ceil(z * 10.0**places - 1e-9)",
        "math.floor(z * 10.0**places * 0.9999)",
    ),
    Mutant(
        "chain not checked",
        LEDGER,
        "or digest != entry_digest(previous, seq, round_number, header, payload)",
        "",
    ),
    Mutant("commits not brought to disk", LEDGER, "synchronous = EXTRA", "synchronous = OFF"),
    Mutant("a head for each link to a file", HEAD, "real = path.resolve()", "real = path"),
    Mutant(
        "a lock for each link to a purse",
        PURSEFILE,
        "real = path.resolve()  # whoever",
        "real = path  # whoever",
    ),
    Mutant("truncation not noticed", HEAD, "if head.entries > count:", "if False:"),
    Mutant("the purse's cap not asked", PURSE, "if not value <= most:", "if False:"),
    Mutant("a record replaced has no cap", PURSE, "if self.replace_one is not None:", "if False:"),
    Mutant(
        "an open study counts with what it said",
        PURSE,
        "if self.open or not gives_back(self.event) else",
        "if not gives_back(self.event) else",
    ),
    Mutant(
        "a closed study counts with nothing",
        PURSE,
        "(self.event) else len(self.said)",
        "(self.event) else 0",
    ),
    Mutant("a sampled study gives back", PURSE, "return event.participation == 1", "return True"),
    Mutant(
        "another study's releases left out of the sum",
        PURSE,
        "counts[stake.event] += stake.kept",
        "counts[stake.event] = stake.kept",
    ),
    Mutant(
        "only the others are composed",
        PURSE,
        "{**self.stakes, study: new}.values()",
        "self.stakes.values()",
    ),
    Mutant(
        "only the new study is composed", PURSE, "{**self.stakes, study: new}.values()", "[new]"
    ),
    Mutant(
        "a call enters a study that was closed",
        PURSE,
        "            if not again:\n",
        "            if False:\n",
    ),
    Mutant(
        "a closed study speaks", PURSE, "if stake is None or not stake.open:", "if stake is None:"
    ),
    Mutant(
        "two agents with the same data", PURSE, "if stake.agent not in (None, agent):", "if False:"
    ),
    Mutant(
        "a second content of a round",
        PURSE,
        "if stake.said[round_number] != digest:",
        "if False:",
    ),
    Mutant("more said than entered", PURSE, "if len(stake.said) >= stake.releases:", "if False:"),
    Mutant(
        "what the site knows it said is not counted",
        PURSE,
        "sorted({*said, *stake.said})",
        "sorted(stake.said)",
    ),
    Mutant(
        "what was said is forgotten with a new entry",
        PURSE,
        "new = stake if old is None else replace(old, open=True)",
        "new = stake",
    ),
    Mutant(
        "a study entered again with other releases",
        PURSE,
        "if (old.event, old.releases) != (event, releases):",
        "if False:",
    ),
    Mutant(
        "a purse's chain not checked",
        PURSEFILE,
        'or digest != entry_digest(digests[-1], seq, None, text, b"")',
        "",
    ),
    Mutant("a purse's commits not brought to disk", PURSEFILE, "= EXTRA", "= OFF"),
    Mutant(
        "a purse set back without its head",
        PURSEFILE,
        'compare(read_head(beside(self.path)), kept.digests, f"purse {self.path}")',
        "str()",
    ),
    Mutant(
        "a purse set back with its head",
        PURSEFILE,
        "if len(digests) < known.entries or digests[known.entries - 1].hex() != known.digest:",
        "if False:",
    ),
    Mutant(
        "a copy of a purse that went its own way",
        PURSEFILE,
        " or digests[known.entries - 1].hex() != known.digest:",
        ":",
    ),
    Mutant("another purse taken", PURSEFILE, "if known.purse != kept.book.name:", "if False:"),
    Mutant("a copied purse taken", PURSEFILE, "if not anywhere and here != made:", "if False:"),
    Mutant("a copy in its place taken", PURSEFILE, "path.stat().st_ino", "0"),
    Mutant("two processes in a purse", PURSEFILE, "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_UN"),
    Mutant("a purse made anew over one that was", PURSEFILE, "or beside(path).exists():", "and 0:"),
    Mutant(
        "an entry that is not committed",
        PURSEFILE,
        "with transaction(db):\n                    digest",
        "if db.execute('BEGIN'):\n                    digest",
    ),
    Mutant(
        "a vector is sent before the purse has it",
        SITE,
        "        purse.say(call.agent, call.round, [said.vector.tobytes()])\n",
        "",
    ),
    Mutant(
        "packets are sent before the purse has them",
        SITE,
        "            purse.say(call.agent, call.round, packets)\n",
        "",
    ),
    Mutant("trials for a study that the purse closed", SITE, "purse.check()", "str()"),
    Mutant(
        "a purse's words are told",
        PAYING,
        "raise PrivacyError(SILENT)",
        "raise PrivacyError(error)",
    ),
    Mutant("what a purse notes can be guessed", PAYING, "bytes.fromhex(kept.salt)", 'b""'),
    Mutant(
        "the site forgets what it saw of its purse", PAYING, "if mark != kept.mark:", "if False:"
    ),
    Mutant(
        "a study run again in another folder",
        PAYING,
        "if kept is None and stake is not None and stake.said:",
        "if False:",
    ),
    Mutant(
        "a site without memory gives back",
        PAYING,
        "if not there and stake is not None and stake.said:",
        "if False:",
    ),
    Mutant("payload outside the digest", CHAIN, "header.encode(), payload)", "header.encode())"),
    Mutant(
        "round may be written twice",
        LEDGER,
        "if round_number in self._entries:",
        "if False:",
    ),
    Mutant(
        "sent before it is committed",
        SERVER,
        "            self._ledger.append(self._open, published, answers)\n",
        "            self._published = published\n",
    ),
    Mutant(
        "fresh noise on re-sending",
        SERVER,
        "entry.round, vectors,",
        "entry.round, vectors + np.random.default_rng().random(),",
    ),
    Mutant(
        "seed accepted in a deployment",
        SERVER,
        "if source.simulation:",
        "if False:",
    ),
    Mutant(
        "absent agents left out of N",
        SERVER,
        "np.zeros((study.agents, study.method.features))",
        "np.ones((study.agents, study.method.features))",
    ),
    Mutant("a round's vectors kept for the next", SERVER, "        self._vectors.fill(0.0)\n", ""),
    Mutant("True is every agent", SERVER, "int(message.agent)", "message.agent"),
    Mutant(
        "a batch may hold one agent twice",
        SERVER,
        "known and np.all(order[1:] > order[:-1])",
        "known",
    ),
    Mutant("a batch may hold NaN", SERVER, "if not flat @ flat < LARGEST**2 / 2:", "if False:"),
    Mutant(
        "a batch speaks again",
        SERVER,
        "found is None or np.any(self._sent[found[0]])",
        "found is None",
    ),
    Mutant("budget not asked", SERVER, "if self.budget is not None:", "if False:"),
    Mutant(
        "the last reply tells what was found",
        SITE,
        'return reply(call, "done", "the study is over")',
        'return reply(call, "done", f"the study is over: {agent.best}")',
    ),
    Mutant(
        "a site that left tells why",
        SITE,
        'return reply(call, "left", LEFT)',
        'return reply(call, "left", error)',
    ),
    Mutant("others' errors are told", SITE, 'f"{kind}: {error}" if ours else kind', "str(error)"),
    Mutant("a round that was heard is spoken in", SITE, "if call.round <= heard:", "if False:"),
    Mutant(
        "a site speaks though all its trials failed",
        SITE,
        "if all(told.value is None for told in memory.told):",
        "if False:",
    ),
    Mutant(
        "digests are not compared with what was sent",
        SITE,
        "                check_links(self._file.study, call.broadcast, call.chain, call.seed)\n",
        "",
    ),
    Mutant(
        "a contradiction is forgotten",
        MEMORY,
        'self._remembered("contradiction", text)',
        "text",
    ),
    Mutant("axes of any length", HEARD, "if max(shape) > LARGEST_ARRAY:", "if False:"),
    Mutant(
        "the chain is not compared", HEARD, "            if old != new:\n", "            if 0:\n"
    ),
    Mutant(
        "a second content under the same digests is let through",
        HEARD,
        "if self.digests.get(broadcast.round, broadcast.digest) != broadcast.digest:",
        "if False:",
    ),
    Mutant(
        "what a broadcast repeats is not compared",
        HEARD,
        "np.array_equal(broadcast.vectors[: len(before)], before)",
        "True",
    ),
    Mutant("a second memory is begun", MEMORY, "            check_only(path)\n", ""),
    Mutant("what sites heard is not compared", COORDINATOR, "if held == reply.head:", "if True:"),
    Mutant(
        "who left counts as present",
        COORDINATOR,
        '_PRESENT = ("spoke", "done", "unfit")',
        '_PRESENT = ("spoke", "done", "unfit", "out")',
    ),
    Mutant(
        "who says what is unfit counts as absent",
        COORDINATOR,
        '_PRESENT = ("spoke", "done", "unfit")',
        '_PRESENT = ("spoke", "done")',
    ),
    Mutant(
        "what an objective asks for is told",
        "flower/site/trying.py",
        "raise SpaceError(OTHERWISE) from error",
        "raise error",
    ),
    Mutant(
        "what an objective says while it is imported is told",
        "flower/site/app.py",
        'raise InvalidInput(f"objective.py cannot be imported ({kind})") from error',
        "raise error",
    ),
    Mutant(
        "the noise of sites that are left out is promised",
        PROMISE,
        "counting_on(agents - k // 2 - k)",
        "counting_on(agents - k)",
    ),
    Mutant(
        "the run chooses a site's memory",
        "flower/site/app.py",
        'context.node_config.get("storage", usual)',
        'context.run_config.get("storage", usual)',
    ),
]


def survives(mutant: Mutant) -> bool:
    """Whether the tests pass on the mutant, which they must not."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "sottovoce"
        shutil.copytree(ROOT / "src" / "sottovoce", package)
        target = package / mutant.file
        target.write_text(target.read_text().replace(mutant.old, mutant.new))
        try:
            result = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    "-x",
                    "-p",
                    "no:cacheprovider",
                    *TESTS[mutant.file],
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=180,
            )
        except subprocess.TimeoutExpired:
            return False  # the tests never end on it, which nobody would overlook
    if result.returncode not in (0, 1):
        raise SystemExit(f"{mutant.what}: pytest could not run\n{result.stdout}{result.stderr}")
    return result.returncode == 0


def strays() -> list[str]:
    """The mutants whose line does not stand once in the file, so that they would break nothing."""
    texts = {file: (ROOT / "src" / "sottovoce" / file).read_text() for file in TESTS}
    return [mutant.what for mutant in MUTANTS if texts[mutant.file].count(mutant.old) != 1]


def named(words: list[str]) -> list[Mutant]:
    """The mutants with one of the words in their name or file; without words, all."""
    chosen = [m for m in MUTANTS if not words or any(w in f"{m.file}: {m.what}" for w in words)]
    if not chosen:
        raise SystemExit(f"no mutant has a name or a file with {' or '.join(words)}")
    return chosen


def main() -> None:
    """Try every mutant, or those named; exit with status 1 if one is not noticed."""
    if astray := strays():
        raise SystemExit(f"these must find their line once: {', '.join(astray)}")
    chosen = named(sys.argv[1:])
    survivors = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = zip(chosen, pool.map(survives, chosen), strict=True)
        for number, (mutant, alive) in enumerate(verdicts, 1):
            survivors += [mutant.what] * alive
            verdict = "SURVIVED" if alive else "noticed"
            said = f"{number:2d}/{len(chosen)}  {verdict:8s}  {mutant.file}: {mutant.what}"
            print(said, flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants noticed")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
