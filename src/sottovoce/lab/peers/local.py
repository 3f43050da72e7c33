"""A method's variant with local noise: each site adds all of it itself, and trusts no server.

With a server, one site moves the weighted sum by at most Δ, and noise of zΔ covers that. Without
one, the server sees each site's vector, which the site has clipped to c and noised with zc: by
the same z, hence the same ε, against the server. The sum then carries the noise of N sites, √N
times as much where weights are equal. A simulation of it is one of the server's release with z√N;
what it spends is that of z.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sottovoce.errors import InvalidInput, check
from sottovoce.federation.methods import Method


def with_local_noise(method: Method, agents: int) -> Method:
    """The method with the noise that N sites add when each of them adds all of it."""
    check(agents >= 1, "agents must be at least 1", agents=agents)
    mechanism = method.mechanism
    if mechanism is None or mechanism.noise == 0 or mechanism.participation != 1:
        raise InvalidInput(f"{method.name} must protect sums over all agents to do so locally")
    louder = replace(mechanism, noise=mechanism.noise * math.sqrt(agents))
    return replace(method, name=f"{method.name}-local", mechanism=louder)
