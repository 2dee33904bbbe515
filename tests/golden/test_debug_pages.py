"""Every page about the mesh can be written for every recorded case, and for each of its proxies."""

import golden
import pytest
from debugged import connection

from mizzen.control.debug import objects, registry, views
from mizzen.control.debug.console import Query, to_json
from mizzen.xds.status import proxy_id


@pytest.mark.parametrize("name", golden.case_names())
def test_pages_can_be_written(name: str) -> None:
    case = golden.load_case(name)
    engine = golden.engine_of(case)
    proxies = [golden.proxy_of(case, proxy) for proxy in case.look_from]
    connections = [connection(proxy=proxy, id=f"{proxy_id(proxy)}-1") for proxy in proxies]
    of_all = {**registry.pages(engine), **objects.pages(engine)}
    of_one = views.pages(engine, connections)  # type: ignore[arg-type]
    for page, found in of_all.items():
        assert to_json(found.read(Query(page=page))()).startswith((b"[", b"{"))
    for page, found in of_one.items():
        for proxy in proxies:
            query = Query(page=page, parameters={"proxyID": proxy_id(proxy)})
            assert len(to_json(found.read(query)())) > len("{}")
