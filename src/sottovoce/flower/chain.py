"""The ledger's chain of digests as a site sees it: one link for each round that was released.

Every call brings the whole chain. A site works out again each link whose release it was sent, so
that a digest stands for a content, and keeps the chain: a later one must extend it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.errors import ProtocolError
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.chain import next_digest
from sottovoce.privacy.noise import Seeded, SystemEntropy
from sottovoce.privacy.release import Release
from sottovoce.simulation import Draws


def check_form(study: FederatedStudy, broadcast: Broadcast | None, chain: Sequence[str]) -> None:
    """Refuse a chain that is not as long as its broadcast's round needs, or ends elsewhere."""
    wanted = 0 if broadcast is None else 1 + study.method.releases.count(broadcast.round + 1)
    if len(chain) != wanted:
        raise ProtocolError(f"{wanted} digests of the ledger must come, got {len(chain)}")
    if broadcast is not None and chain[-1] != broadcast.head:
        raise ProtocolError("a broadcast's head must be the last of the ledger's digests")


def check_links(
    study: FederatedStudy, broadcast: Broadcast, chain: Sequence[str], seed: int | None = None
) -> None:
    """Refuse a broadcast whose releases, and what the study says of them, do not give the chain.

    Of agents that learn the broadcast holds all releases, of others the last.
    """
    rounds, released = study.release_rounds, len(chain) - 1
    held = released if study.method.shared.cumulative else 1
    event = planned_event(study, _label(seed))
    for k, vectors in enumerate(np.split(broadcast.vectors, held), released - held):
        if next_digest(chain[k], k + 1, rounds[k], Release(vectors, event)) != chain[k + 1]:
            raise ProtocolError(f"the ledger's digest of round {rounds[k]} is not of what was sent")


def _label(seed: int | None) -> str:
    """What the server's randomness is called in its ledger."""
    if seed is None:
        return SystemEntropy.label
    return Seeded(Draws(seed, 0).seed_for("server")).label
