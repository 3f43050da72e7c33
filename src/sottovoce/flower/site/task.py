"""One message to a site, answered by the installed package: a process of its own, then it ends.

In the place of Flower's `flwr-clientapp`, which would unpack the bundle of a run and import it.
Started by `sottovoce.flower.deploy.executor`, with the address of the site's SuperNode; the secret
token of the task comes on standard input, since other users can read command lines.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing

from flwr.app import Context, Error, Message
from flwr.common.constant import ErrorCode, SubStatus
from flwr.supercore.app_utils import start_parent_process_monitor
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
)
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from sottovoce.errors import ProtocolError
from sottovoce.flower.site.app import app
from sottovoce.flower.site.bundle import check_bundle
from sottovoce.flower.wire import printable


def main() -> None:
    """Answer one message."""
    address, kind = sys.argv[1:]
    token = sys.stdin.readline().strip()
    start_parent_process_monitor(os.getppid())
    client = RuntimeHttpClient.from_server_address(
        address,
        insecure=True,  # loopback
        root_certificates=None,
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="flwr-clientapp"),
            RuntimeTokenHttpInterceptor(token),
        ],
        retry_invoker=make_simple_http_retry_invoker(),
    )
    with closing(client):
        heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(client))
        heartbeat.start()
        try:
            _work(client, kind)
        finally:
            heartbeat.stop()


def _work(client: RuntimeHttpClient, kind: str) -> None:
    message, context, run, bundle = pull_task_input(client)
    try:
        check_bundle(bundle.content, kind)
    except ProtocolError as error:
        words = printable(str(error))
        print(f"run {run.run_id}: {words}", file=sys.stderr, flush=True)
        reply = Message(Error(ErrorCode.INVALID_FAB, words), reply_to=message)
    else:
        reply = answered(message, context)
    push_message(client, reply, context)
    well = not reply.has_error()
    push_task_output(client, context, SubStatus.COMPLETED if well else SubStatus.FAILED, "")


def answered(message: Message, context: Context) -> Message:
    """What our app says to a message; of an error only its kind, as its words may hold data."""
    try:
        return app(message, context)
    except Exception as error:
        reason = type(error).__name__
        return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason), reply_to=message)


if __name__ == "__main__":
    main()
