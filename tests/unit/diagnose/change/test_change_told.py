"""What a proxy asks for by name, of the parts that it shares with others."""

import pytest
from traced_mesh import DOOR, SHOP, pod, service, world_of

from mizzen.compile import resource
from mizzen.diagnose import references
from mizzen.diagnose.change import told


@pytest.mark.parametrize("dialect", ["istio", "envoy"])
def test_the_names_of_all_parts_are_those_of_the_whole(dialect: told.Dialect) -> None:
    world = world_of(SHOP, pod("other"), service("other", port="{name: tcp, port: 9000}"), DOOR)
    assert world.db is not None
    reader = told.Reader()
    everybody = told.read(world.db, reader, dialect)
    assert len(everybody) == 4
    for each in everybody.values():
        printed = (map(reader.printed, each.sets[kind]) for kind in (resource.CLUSTER, resource.LISTENER))
        clusters, listeners = ([one for one in kind if one is not None] for kind in printed)
        whole = references.find_references(clusters, listeners)
        assert each.asked == {
            resource.ROUTE: set(whole.routes),
            resource.ENDPOINT: set(whole.endpoints),
            resource.EXTENSION: set(whole.extensions),
            resource.SECRET: set(whole.secrets),
        }
    assert any(each.asked[resource.SECRET] - {"default", "ROOTCA"} for each in everybody.values())
