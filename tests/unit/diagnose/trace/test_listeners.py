"""Which listener takes a connection, and what its filters find out first."""

from typing import Any

from mizzen.diagnose.trace import listeners
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.wire import Hello, Wire
from mizzen.diagnose.trace.world import Holdings

_TYPES = "type.googleapis.com/envoy.extensions.filters.listener."


def listener(name: str, address: str, port: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "address": {"socketAddress": {"address": address, "portValue": port}}, **more}


def chosen(address: str, port: int, *held: dict[str, Any]) -> str:
    found = listeners.outbound(Holdings(listeners={each["name"]: each for each in held}), address, port)
    return str(found.listener["name"]) if found is not None else ""


VIRTUAL = listener("virtualOutbound", "0.0.0.0", 15001)


def test_an_address_of_its_own_comes_before_every_address_and_that_before_the_rest():
    held = (VIRTUAL, listener("wild", "0.0.0.0", 80), listener("own", "10.0.0.1", 80))
    assert chosen("10.0.0.1", 80, *held) == "own"
    assert chosen("10.0.0.2", 80, *held) == "wild"
    assert chosen("10.0.0.1", 81, *held) == "virtualOutbound"
    assert chosen("", 80, *held) == "wild"
    assert chosen("10.0.0.1", 80) == ""


def test_further_addresses_count():
    more = [{"address": {"socketAddress": {"address": "2001:db8::1", "portValue": 80}}}]
    assert chosen("2001:db8::1", 80, VIRTUAL, listener("both", "10.0.0.1", 80, additionalAddresses=more)) == "both"


def inspected(*kinds: str, disabled: dict[str, Any] | None = None, **wire: Any) -> tuple[str, str, tuple[str, ...]]:
    filters = [
        {"typedConfig": {"@type": f"{_TYPES}{kind}.v3.X"}, **({"filterDisabled": disabled} if disabled else {})}
        for kind in kinds
    ]
    seen = listeners.inspect({"listenerFilters": filters}, Wire(address="10.0.0.1", port=8080, **wire))
    return seen.transport, seen.server_name, seen.protocols


HELLO = Hello(server_name="a.b", protocols=("h2",))


def test_tls_is_seen_by_its_inspector_only():
    assert inspected("tls_inspector", "http_inspector", hello=HELLO, message=Message()) == ("tls", "a.b", ("h2",))
    assert inspected("http_inspector", hello=HELLO) == ("raw_buffer", "", ())


def test_http_is_seen_where_it_is_not_wrapped():
    assert inspected("tls_inspector", "http_inspector", message=Message()) == ("raw_buffer", "", ("http/1.1",))
    assert inspected("http_inspector", message=Message(http2=True)) == ("raw_buffer", "", ("h2c",))
    assert inspected("http_inspector") == ("raw_buffer", "", ())


def test_inspectors_may_be_off_for_a_port():
    mine = {"destinationPortRange": {"start": 8080, "end": 8081}}
    other = {"destinationPortRange": {"start": 9000, "end": 9001}}
    assert inspected("http_inspector", disabled=mine, message=Message())[2] == ()
    assert inspected("http_inspector", disabled=other, message=Message())[2] == ("http/1.1",)
    assert inspected("http_inspector", disabled={"orMatch": {"rules": [other, mine]}}, message=Message())[2] == ()
    assert inspected("http_inspector", disabled={"notMatch": mine}, message=Message())[2] == ("http/1.1",)
