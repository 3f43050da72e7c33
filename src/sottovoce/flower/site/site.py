"""One party of a federation: its trials are Optuna's, recorded on its own disk.

A site lives for one call only. What lasts is its `Memory`; its `Agent` is made anew from that,
so a process may be killed at any moment, and the next call goes on from what was stored.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

from sottovoce.errors import (
    InvalidInput,
    ProtocolError,
    SimulationOnly,
    SottovoceError,
    StorageError,
    StudyMismatch,
    WrongRound,
)
from sottovoce.federation.agent import Agent
from sottovoce.federation.study import check_agent
from sottovoce.flower.chain import check_form, check_links
from sottovoce.flower.site import leaving
from sottovoce.flower.site.log import LOG, log_error, site_log
from sottovoce.flower.site.memory import Memory, lock
from sottovoce.flower.site.paying import Account
from sottovoce.flower.site.summing import check_identity, check_sum, sealed_once
from sottovoce.flower.site.trying import Objective, Trying
from sottovoce.flower.studyfile import StudyFile, difference
from sottovoce.flower.wire import Answer, Call, Reply
from sottovoce.secure_sum.keys import Identity
from sottovoce.simulation import Draws
from sottovoce.simulation.streams import draws_of_agent

PATIENCE = 2.0  # seconds to wait for an earlier call to end
LEFT = "it left the study"  # all that the coordinator learns


class Site:
    """One party.

    simulation: whether it may take the seeds of a run that protects nobody.
    storage: "sqlite", or "journal" for file systems on which SQLite cannot lock.
    identity: its keys, where the coordinator is not trusted with its vectors.
    workers: how many trials it runs side by side, in threads.
    """

    def __init__(
        self,
        file: StudyFile,
        objective: Objective,
        folder: str | Path,
        *,
        simulation: bool = False,
        storage: str = "sqlite",
        patience: float = PATIENCE,
        identity: Identity | None = None,
        workers: int = 1,
    ) -> None:
        self._identity = identity
        self._file, self._folder = file, Path(folder)
        self._simulation, self._storage, self._patience = simulation, storage, patience
        self._trying = Trying(file, objective, workers)

    def answer(self, call: Call) -> Reply:
        """Do a step of the study; the same call again runs nothing, and gets the same reply.

        Unless the site refused or left: then it tries again, as its objective may be mended.
        """
        try:
            self._check(call)
            with lock(self._folder, self._patience) as held:
                if not held:
                    return reply(call, "busy", "an earlier call of this site still runs")
                with (
                    site_log(self._folder) as log,
                    Memory(
                        self._folder, self._storage, self._file.study, self._file.direction
                    ) as memory,
                ):
                    return self._step(call, memory, log)
        except Exception as error:
            log_error(self._folder, error)
            return refusal(call, error)

    def _check(self, call: Call) -> None:
        """Refuse a call that does not fit this site's own study.toml."""
        if call.seed is not None and not self._simulation:
            raise SimulationOnly("a site of a real federation takes no seed")
        ours = json.loads(json.dumps(self._file.constants))
        apart = difference(ours, call.constants)
        if apart is not None:
            raise StudyMismatch(f"the public constants differ: {apart}")
        if call.study != self._file.study.fingerprint:
            raise StudyMismatch("the study's fingerprint is not that of its constants")
        check_agent(call.agent, self._file.study.agents)
        rounds = [step.round for step in self._file.steps]
        if call.round not in rounds:
            raise WrongRound(f"nothing is to be done in round {call.round}")
        before = rounds[rounds.index(call.round) - 1] if call.round > 0 else None
        got = None if call.broadcast is None else call.broadcast.round
        if got != before:
            raise WrongRound(f"before round {call.round} comes broadcast {before}, got {got}")
        check_form(self._file.study, call.broadcast, call.chain)
        if self._file.study.sums is not None:
            check_identity(self._file, call.agent, self._identity)

    def _step(self, call: Call, memory: Memory, log: logging.Logger) -> Reply:
        """Answer, and say with it what was heard: that follows from the calls alone."""
        memory.claim(call.agent)
        try:
            said = self._said(call, memory, log)
        except Exception as error:
            log_error(self._folder, error)
            said = refusal(call, error)
        heard = memory.heard
        return replace(said, heard=heard.round, head=heard.head)

    def _said(self, call: Call, memory: Memory, log: logging.Logger) -> Reply:
        memory.compare(call.broadcast, call.chain)
        heard = memory.heard.round
        if call.round <= heard:
            # A coordinator asks again only for a round that it has not committed. One that was
            # broadcast is spent: what this site said then must not get into a second release.
            raise WrongRound(
                f"this site has heard the broadcast of round {heard}, and does not speak in round "
                f"{call.round} again: was an old ledger restored?"
            )
        last, purse = self._file.study.rounds, Account(self._folder, self._file.study)
        if call.round < last:
            purse.check()  # before hours of trials
        if not memory.spoke(call.round):
            memory.bury()
            agent = self._agent(call, memory)
            if call.broadcast is not None:
                agent.receive(call.broadcast)
                check_links(self._file.study, call.broadcast, call.chain, call.seed)
                if self._file.study.sums is not None:
                    check_sum(self._file, call.broadcast, call.answers)
                memory.hear(call.broadcast, call.chain)
            self._trying(call.round, memory, agent, log)
            if all(told.value is None for told in memory.told):
                return self._leave(call, memory)
            leaving.forget(self._folder)
            if call.round == last:
                purse.close(r for r in self._file.study.release_rounds if memory.spoke(r))
                return reply(call, "done", "the study is over")
            memory.say(call.round, agent.message(call.round))
        said = memory.said(call.round)
        if self._identity is not None and self._file.study.sums is not None:
            packets = sealed_once(self._file, call, said.vector, memory, self._identity)
            purse.say(call.agent, call.round, packets)
            return Reply(call.study, call.round, call.agent, "sealed", packets=packets)
        purse.say(call.agent, call.round, [said.vector.tobytes()])
        return Reply(call.study, call.round, call.agent, "vector", said.vector)

    def _leave(self, call: Call, memory: Memory) -> Reply:
        """Leave before anything is said: trials that all failed are a mistake, not a result."""
        count, error = len(memory.told), memory.last_error
        leaving.note(
            self._folder,
            f"This site left the study in round {call.round}: none of its {count} trials gave a "
            f"value. The last error: {error}. Its log is {self._folder.absolute() / LOG}",
        )
        memory.leave()
        return reply(call, "left", LEFT)

    def _agent(self, call: Call, memory: Memory) -> Agent:
        """The agent that this site has become; in a seeded simulation, with the run's draws."""
        study = self._file.study
        draws = None
        if call.seed is not None:
            draws = draws_of_agent(Draws(call.seed, 0), study.agents, call.agent)
        agent = Agent(study, call.agent, direction=self._file.direction, draws=draws)
        try:
            for params, value in memory.earlier:
                agent.add_earlier(params, value)
            for told in memory.told:
                agent.tell(told.params, told.value)
            heard = memory.broadcast
            if heard is not None:
                agent.receive(heard)
        except (InvalidInput, ProtocolError) as error:  # whose words may hold what was stored
            raise StorageError("what this site has stored does not fit the study") from error
        return agent


def reply(call: Call, answer: Answer, reason: str) -> Reply:
    """An answer without a vector."""
    return Reply(call.study, call.round, call.agent, answer, reason=reason)


def refusal(call: Call, error: Exception) -> Reply:
    """Not to take part as asked. What others' errors say stays at the site: it may hold data."""
    kind = type(error).__name__
    ours = isinstance(error, SottovoceError)
    return reply(call, "refused", f"{kind}: {error}" if ours else kind)
