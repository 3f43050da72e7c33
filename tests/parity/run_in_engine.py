"""Runs a study in Flower's simulation engine: python run_in_engine.py NODES RUN-CONFIG-AS-JSON.

Both apps are the real ones; the engine's Python entry takes no run-config, so it is put in here.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from sottovoce.flower.coordinator import app as serverapp


def configured(context: Context, config: dict[str, Any]) -> Context:
    """The context as it would be, had the engine taken the run-config."""
    return Context(context.run_id, context.node_id, context.node_config, context.state, config)


def main() -> None:
    nodes, config = int(sys.argv[1]), json.loads(sys.argv[2])
    client, server = ClientApp(), ServerApp()

    @client.train()
    def step(message: Message, context: Context) -> Message:
        from sottovoce.flower.site import app as clientapp

        return clientapp.app(message, configured(context, config))

    @server.main()
    def coordinate(grid: Grid, context: Context) -> None:
        serverapp.app(grid, configured(context, config))

    run_simulation(server, client, nodes, backend_config={"client_resources": {"num_cpus": 1}})


if __name__ == "__main__":
    main()
