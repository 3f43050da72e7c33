"""A Ray cluster of two nodes on this machine, and commands that run on it, one after the other.

Usage: python two_nodes.py '[["sottovoce", "run", "--cluster", "ADDRESS"]]'
"""

from __future__ import annotations

import json
import subprocess
import sys


def main() -> int:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    assert len(cluster.list_all_nodes()) == 2
    try:
        for command in json.loads(sys.argv[1]):
            words = [cluster.address if word == "ADDRESS" else word for word in command]
            code = subprocess.run([sys.executable, "-m", "sottovoce.cli", *words[1:]]).returncode
            if code:
                return code
    finally:
        cluster.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
