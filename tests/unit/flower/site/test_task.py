"""One message to a site: what its sender is told when our app itself fails."""

from __future__ import annotations

import pytest

# Flower imports a Typer that names parts of Click which are on their way out
pytestmark = pytest.mark.filterwarnings("ignore:'click.utils:DeprecationWarning")


def test_of_an_error_only_its_kind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from flwr.app import Context, Message, MessageType, RecordDict
    from flwr.supercore.task_identity import TaskIdentity

    from sottovoce.flower.site import task

    def broken(message: Message, context: Context) -> Message:
        raise KeyError("patient 12345")

    monkeypatch.setattr(task, "app", broken)
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 7, 1
    message = Message(RecordDict(), 7, MessageType.TRAIN, group_id="token")
    context = Context(run_id=1, node_id=7, node_config={}, state=RecordDict(), run_config={})
    reply = task.answered(message, context)
    assert (reply.error.code, reply.error.reason) == (2, "KeyError")
    assert reply.metadata.group_id == "token"
