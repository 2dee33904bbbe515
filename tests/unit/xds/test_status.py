"""What proxy-status and /debug read."""

import pytest
from ads_model import SENTINEL, TYPES, Mesh, say_due

from mizzen.compile.resource import CLUSTER, LISTENER, ROUTE
from mizzen.model.proxy import parse_node
from mizzen.xds.delta import DeltaSession
from mizzen.xds.requests import Rejection, Request
from mizzen.xds.responses import Responses
from mizzen.xds.status import Connection, Connections, Event
from mizzen.xds.watch import State


@pytest.fixture
def connections():
    return Connections()


def connection(
    connections: Connections, pod: str = "front-1", namespace: str = "shop", cluster: str = "c"
) -> Connection:
    proxy = parse_node(
        {
            "id": f"sidecar~10.0.0.1~{pod}.{namespace}~{namespace}.svc.cluster.local",
            "metadata": {"NAMESPACE": namespace, "CLUSTER_ID": cluster},
        }
    )
    connection_id = connections.next_id(proxy)
    made = Connection(
        id=connection_id,
        proxy=proxy,
        version="1.32.0",
        address="10.0.0.1:4000",
        connected_at=1.0,
        delta=True,
        identity=None,
        session=DeltaSession(Responses(), TYPES, f"{connection_id}/"),
        stream=Closed(),
    )
    connections.add(made)
    return made


class Closed:
    """A stream that counts how often it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_ids_are_the_pods_with_a_number(connections):
    assert [connection(connections).id for _ in range(2)] == ["front-1.shop-1", "front-1.shop-2"]


def test_connections_are_listed_by_cluster_namespace_and_id(connections):
    for pod, namespace, cluster in (("b", "z", "1"), ("a", "z", "1"), ("z", "a", "1"), ("a", "a", "0")):
        connection(connections, pod, namespace, cluster)
    assert [c.id for c in connections] == ["a.a-4", "z.a-3", "a.z-2", "b.z-1"]


def test_a_connection_is_found_by_a_part_of_its_id(connections):
    front = connection(connections)
    assert connections.find("front-1.shop") is front
    assert connections.find("-1") is front
    assert connections.find("cart") is None
    connections.remove(front)
    assert connections.find("front") is None
    assert len(connections) == 0


def test_coming_and_going_is_told(connections):
    told = []
    connections.listen(lambda event, who: told.append((event, who.id)))
    front = connection(connections)
    connections.remove(front)
    assert told == [(Event.CONNECTED, front.id), (Event.DISCONNECTED, front.id)]


def test_all_streams_can_be_ended(connections):
    made = [connection(connections, pod) for pod in "ab"]
    connections.close()
    assert [c.stream.closed for c in made] == [1, 1]


def test_each_type_tells_what_was_sent_and_accepted(connections):
    mesh, front = Mesh(), connection(connections)
    session = front.session
    session.receive(Request(type_url=CLUSTER))
    [clusters] = say_due(session, mesh)
    session.receive(Request(type_url=CLUSTER, nonce=clusters.nonce))
    session.receive(Request(type_url=ROUTE, names=("b", "a")))
    say_due(session, mesh)
    session.receive(Request(type_url=LISTENER))
    cds, lds, rds = front.types()
    assert [status.type_url for status in (cds, lds, rds)] == [CLUSTER, LISTENER, ROUTE]
    assert [status.state for status in (cds, lds, rds)] == [State.SYNCED, State.NOT_SENT, State.STALE]
    assert cds.sent_nonce == cds.acked_nonce == clusters.nonce
    assert cds.sent_version == cds.accepted_version == front.sent(CLUSTER).version == front.accepted(CLUSTER).version
    assert (lds.sent_nonce, lds.sent_version, lds.sent_at) == ("", "", 0.0)
    assert (rds.acked_nonce, rds.accepted_version, rds.names) == ("", "", ("a", "b"))
    assert front.accepted(ROUTE) is None
    assert front.sent("unknown") is front.accepted("unknown") is None


def test_an_error_is_told_with_its_culprits(connections):
    mesh, front = Mesh(), connection(connections)
    front.session.receive(Request(type_url=CLUSTER))
    [said] = say_due(front.session, mesh)
    rejection = Rejection(code=13, message=f"cluster '{SENTINEL}' is odd")
    front.session.receive(Request(type_url=CLUSTER, nonce=said.nonce, rejection=rejection))
    [status] = front.types()
    assert status.state is State.ERROR
    assert status.error == "Internal:cluster 'sentinel' is odd"
    assert status.culprits == (SENTINEL,)
    assert status.acked_nonce == ""


def test_a_proxy_that_came_back_with_everything_is_synced_by_its_version(connections):
    mesh, front = Mesh(), connection(connections)
    held = {name: r.version for name, r in mesh.resources[CLUSTER].items()}
    front.session.receive(Request(type_url=CLUSTER, initial_versions=held))
    assert say_due(front.session, mesh) == []
    [status] = front.types()
    assert status.state is State.SYNCED
    assert status.sent_nonce == status.acked_nonce == status.sent_version != ""
