"""The ALPN words of the mesh and who writes them."""

from mizzen import protos
from mizzen.compile.filters import alpn


def test_plain_text_http_is_recognised_with_http10_only_where_asked():
    assert alpn.plain_http(http10=False) == ("http/1.1", "h2c")
    assert alpn.plain_http(http10=True) == ("http/1.0", "http/1.1", "h2c")


def test_istio_overrides_by_upstream_protocol():
    found = protos.to_json(alpn.build_http_filter("istio"))
    assert found["name"] == "istio.alpn"
    by_protocol = {o.get("upstreamProtocol", "HTTP10"): o["alpnOverride"] for o in found["typedConfig"]["alpnOverride"]}
    assert by_protocol == {
        "HTTP10": ["istio-http/1.0", "istio", "http/1.0"],
        "HTTP11": ["istio-http/1.1", "istio", "http/1.1"],
        "HTTP2": ["istio-h2", "istio", "h2"],
    }


def test_upstream_envoy_writes_the_http11_words_unless_a_route_says_otherwise():
    def words(config):
        (state,) = config["onRequestHeaders"]
        assert state["objectKey"] == "envoy.network.application_protocols"
        assert state["sharedWithUpstream"] == "ONCE"
        return state["formatString"]["textFormatSource"]["inlineString"]

    found = protos.to_json(alpn.build_http_filter("envoy"))
    assert found["name"] == alpn.ROUTE_FILTER
    assert words(found["typedConfig"]) == "istio-http/1.1,istio,http/1.1"
    assert words(protos.any_to_json(alpn.build_route_override(""))) == "istio-http/1.1,istio,http/1.1"
    assert words(protos.any_to_json(alpn.build_route_override("http2"))) == "istio-h2,istio,h2"
    as_spoken = words(protos.any_to_json(alpn.build_route_override("downstream")))
    assert as_spoken == (
        '%CEL(request.protocol == "HTTP/2" || request.protocol == "HTTP/3"'
        ' ? "istio-h2,istio,h2" : "istio-http/1.1,istio,http/1.1")%'
    )


def test_a_route_can_switch_it_off():
    assert protos.any_to_json(alpn.build_route_override(None))["disabled"] is True
