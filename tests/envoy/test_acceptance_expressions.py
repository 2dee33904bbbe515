"""Expressions of Telemetry in a real Envoy: what is translated is taken, and what is not would be refused.

Each expression stands alone in a listener, so that one Envoy judges them all. The lists are those of the translation's
own knowledge: were Envoy to learn or to forget one of these, this says so.
"""

from typing import Any

import acceptance_control
import acceptance_verdict
import golden
import pytest

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.filters import access_logs, expressions, metric_loggers
from mizzen.compile.filters.access_logs import AccessLog, FileLog
from mizzen.compile.filters.metrics import MetricOverride, Metrics

pytestmark = pytest.mark.envoy

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_router_v3 = protos.package("envoy.extensions.filters.http.router.v3")

VALUES = [
    *("request.url_path", "node.metadata['ZONE']", "string(destination.port)", "string(string(request.time))"),
    *(f"{kind}(1)" for kind in ("int", "uint", "double", "type", "dyn")),
    *("bytes('a')", "bool('true')", "timestamp('2020-01-01T00:00:00Z')", "duration('1s')", "size('a') + 'a'.size()"),
    *("'a'.contains('a')", "'a'.startsWith('a')", "'a'.endsWith('a')", "'a'.matches('a')", "matches('a', 'a')"),
    *(f"request.time.get{part}()" for part in ("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear")),
    *(f"request.time.get{part}('UTC')" for part in ("Hours", "Minutes", "Seconds", "Milliseconds")),
    *(
        "has(request.headers.a) ? 'a' : 'b'",
        "'a' in request.headers",
        "{'a': 1u}['a']",
        "[1, -2][0] % 2",
        "1\n+ 2 // c",
    ),
    *("request.headers['a%b(c)'] == null", "r'\\a' + \"b\"", "!true || 1 < 2 && 'a' != b'c'"),
    *("+".join(["1"] * 31), "a" + ".b" * 30, "(" * 29 + "1" + ")" * 29, "1" + "?1:1" * 14),
    " || ".join(f"request.headers['x{number}'] == 'a'" for number in range(100)),
]
FILTERS = [
    *VALUES,
    *("string(destination.port) == '80'", "'A'.lowerAscii() == 'a'", "'a'.upperAscii() == 'A'", "' a'.trim() == 'a'"),
    *("'a,b'.split(',')[0] == 'a'", "'a,b'.split(',', 1)[0] == 'a'", "'a'.replace('a', 'b') == 'b'"),
    *("'abc'.substring(1) == 'b'", "'abc'.substring(1, 2) == 'b'", "'a'.indexOf('a') == 0", "'a'.indexOf('a', 0) == 0"),
    *("'a'.charAt(0) == 'a'", "['a'].join(',') == 'a'", "['a'].join() == 'a'", "'a'.replace('a', 'b', 1) == 'b'"),
    *("'%s'.format(['a']) == 'a'", "'a)%b' == request.url_path"),
]
REFUSED = [
    *("", "1 +", "1 1", "has(request.headers['x'])", "has(x + y)", "[1].all(x, x > 0)", "[1].exists(x, x > 0)"),
    *("[1].exists_one(x, x > 0)", "[1].map(x, x)", "[1].filter(x, x > 0)", "nonsense(1)", "int(1, 2)", "'a'.size(1)"),
    *("Thing{a: 1}", "request.?headers", "request.headers[?'a']", "optional.of(1)", "cel.bind(a, 1, a)"),
    *("(" * 40 + "1" + ")" * 40, "a" + ".b" * 40, "+".join(["1"] * 40)),
]
REFUSED_AS_VALUES = [*REFUSED, "string(1) + string(2)", "'A'.lowerAscii()", "'a)%b'", "'''a\nb'''"]


def build_listeners(logs: list[Any]) -> list[Any]:
    """A listener for each logger, on a port of its own."""
    router = [{"name": "router", "typed_config": protos.pack(_router_v3.Router())}]
    found = []
    for number, log in enumerate(logs):
        manager = _hcm_v3.HttpConnectionManager(
            stat_prefix="x", http_filters=router, route_config={"name": "x"}, access_log=[log]
        )
        chain = {"filters": [{"name": "manager", "typed_config": protos.pack(manager)}]}
        address = {"socket_address": {"address": "10.1.1.10", "port_value": 4000 + number}}
        found.append(_listener_v3.Listener(name=f"number-{number}", address=address, filter_chains=[chain]))
    return found


async def refused(logs: list[Any]) -> tuple[set[int], str]:
    """The loggers that an Envoy refuses, by their place, and all that it says."""
    case = golden.load_case("base")
    db = golden.engine_of(case)
    listeners = build_listeners(logs)
    encoded = (resource.encode_resource(one.name, one) for one in listeners)
    for key, value in acceptance_control.spoiling(resource.LISTENER, *encoded).items():
        db.set(key, value)
    text = "\n".join((await acceptance_verdict.judge(db, case, "front")).faults)
    return {place for place, one in enumerate(listeners) if f"LDS: {one.name} does not stand" in text}, text


def as_value(expression: str) -> Any:
    """A logger with a label of that value, whether or not it is translated."""
    override = MetricOverride(name="requests_total", dimensions=(("label", "'mark'"),))
    log = metric_loggers.build_http_logger("outbound", Metrics(overrides=(override,)), mutual_tls=False)
    config = protos.unpack(log.typed_config)
    for tag in config.counters[0].stat.tags:
        if tag.name == "label":
            tag.value_format = f"%CEL({expression})%"
    return type(log)(name=log.name, typed_config=protos.pack(config))


def as_filter(expression: str) -> Any:
    """A logger with that condition, whether or not it is translated."""
    log = access_logs.build_access_log(AccessLog(sink=FileLog(path="/dev/stdout"), expression="true"), "envoy")
    packed = log.filter.extension_filter.typed_config
    config = protos.unpack(packed)
    config.expression = expression
    packed.CopyFrom(protos.pack(config))
    return log


async def test_translated_values_and_conditions_are_taken() -> None:
    values = [expressions.translate(text, "value") for text in VALUES]
    filters = [expressions.translate(text, "filter") for text in FILTERS]
    assert None not in (*values, *filters), [*zip(VALUES, values, strict=True), *zip(FILTERS, filters, strict=True)]
    places, text = await refused([*map(as_value, values), *map(as_filter, filters)])
    assert not places, [(*VALUES, *FILTERS)[place] for place in sorted(places)]
    assert text == ""


async def test_what_is_not_translated_would_be_refused() -> None:
    assert [text for text in REFUSED_AS_VALUES if expressions.translate(text, "value") is not None] == []
    assert [text for text in REFUSED if expressions.translate(text, "filter") is not None] == []
    logs = [*map(as_value, REFUSED_AS_VALUES), *map(as_filter, REFUSED)]
    places, text = await refused(logs)
    taken = set(range(len(logs))) - places
    assert not taken, [(*REFUSED_AS_VALUES, *REFUSED)[place] for place in sorted(taken)] + [text]
