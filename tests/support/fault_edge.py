"""Faults at gateways, on the way in and on the way out."""

from typing import Any

from attack_material import Users
from fault_cases import HOME, fault, of_family, rule, serving
from fault_security import limiting
from traffic_certificates import OTHER, ROOT, Authority, secret

_HTTP = "{number: 80, name: http, protocol: HTTP}"
PLAIN, SECURE = "ingress:8080", "ingress:8443"
VISITORS = Users("https://visitors.example.com", "v1")


def _gateway(name: str, servers: str, selector: str = "gateway: ingress") -> str:
    return f"""
kind: Gateway
metadata: {{name: {name}}}
spec:
  selector: {{{selector}}}
  servers:
{servers}
---
"""


def _plain(name: str, host: str = "") -> str:
    return f"    - {{hosts: [{host or name + '.example.com'}], port: {_HTTP}}}"


def _tls(name: str, mode: str, host: str = "", port: int = 443, credential: str = "") -> str:
    own = f", credentialName: {credential or name}" if mode in ("SIMPLE", "MUTUAL") else ""
    protocol = "TLS" if mode == "PASSTHROUGH" else "HTTPS"
    hosts = host or f"{name}.example.com"
    return f"""    - hosts: ["{hosts}"]
      port: {{number: {port}, name: tls-{name}, protocol: {protocol}}}
      tls: {{mode: {mode}{own}}}"""


def _led(name: str, to: str = "", gateway: str = "", host: str = "", more: str = "", http: str = "") -> str:
    way = f"route: [{{destination: {{host: {to or name}}}}}]"
    return f"""
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{host or name + ".example.com"}]
  gateways: [{gateway or name}]
  {more}
  http: [{{{http.replace("TO", way) if http else way}}}]
---
"""


def _entering(name: str, *manifests: str, **more: object) -> dict[str, object]:
    scheme = "https" if more.get("door") == SECURE else "http"
    given: dict[str, Any] = {"source": "outer", "door": PLAIN, "url": f"{scheme}://{name}.example.com/", **more}
    return fault(name, *manifests, **given)


def _blaming(kind: str, name: str) -> str:
    return f"{kind}/{HOME}/{name}"


ROUTED = of_family(
    "GW",
    _entering(
        "gw-host",
        serving("gw-host"),
        _gateway("gw-host", _plain("gw-host", "other-gw-host.example.com")),
        _led("gw-host"),
        cause=_blaming("Gateway", "gw-host"),
    ),
    _entering(
        "gw-service-host",
        serving("gw-service-host"),
        _gateway("gw-service-host", _plain("gw-service-host")),
        _led("gw-service-host", host="typo-gw-service-host.example.com"),
        cause=_blaming("Gateway", "gw-service-host"),
    ),
    _entering("gw-stranger", url="http://gw-stranger.example.org/"),
    _entering(
        "gw-unbound",
        serving("gw-unbound"),
        _gateway("gw-unbound", _plain("gw-unbound")),
        _led("gw-unbound", gateway="mesh"),
        cause=_blaming("VirtualService", "gw-unbound"),
    ),
    _entering(
        "gw-misspelt",
        serving("gw-misspelt"),
        _gateway("gw-misspelt", _plain("gw-misspelt")),
        _led("gw-misspelt", gateway="gw-mispelt"),
        cause=_blaming("VirtualService", "gw-misspelt"),
    ),
    _entering(
        "gw-other-space",
        serving("gw-other-space"),
        _gateway("gw-other-space", _plain("gw-other-space")),
        _led("gw-other-space", gateway="gateways/gw-other-space"),
        cause=_blaming("VirtualService", "gw-other-space"),
    ),
    _entering(
        "gw-not-exported",
        serving("gw-not-exported"),
        _gateway("gw-not-exported", _plain("gw-not-exported")),
        _led("gw-not-exported", more='exportTo: ["."]'),
        cause=_blaming("VirtualService", "gw-not-exported"),
    ),
    _entering(
        "gw-space-prefix",
        serving("gw-space-prefix"),
        _gateway("gw-space-prefix", _plain("gw-space-prefix", '"blind/gw-space-prefix.example.com"')),
        _led("gw-space-prefix"),
        cause=_blaming("Gateway", "gw-space-prefix"),
    ),
    _entering(
        "gw-path",
        serving("gw-path"),
        _gateway("gw-path", _plain("gw-path")),
        _led("gw-path", http="match: [{uri: {prefix: /api}}], TO"),
        cause=_blaming("VirtualService", "gw-path"),
    ),
    _entering(
        "gw-nowhere",
        _gateway("gw-nowhere", _plain("gw-nowhere")),
        _led("gw-nowhere", to="gw-nowhere-at-all"),
        cause=_blaming("VirtualService", "gw-nowhere"),
    ),
    _entering(
        "gw-subset",
        serving("gw-subset"),
        _gateway("gw-subset", _plain("gw-subset")),
        _led("gw-subset", http="route: [{destination: {host: gw-subset, subset: v9}}]"),
        cause=_blaming("VirtualService", "gw-subset"),
    ),
    _entering(
        "gw-nobody",
        serving("gw-nobody", selector="app: nobody"),
        _gateway("gw-nobody", _plain("gw-nobody")),
        _led("gw-nobody"),
        cause=_blaming("Service", "gw-nobody"),
    ),
    _entering(
        "gw-strict",
        serving("gw-strict", "locked", selector="app: locked"),
        _gateway("gw-strict", _plain("gw-strict")),
        _led("gw-strict", to="gw-strict.locked.svc.cluster.local"),
        rule("gw-strict", "gw-strict.locked.svc.cluster.local", "tls: {mode: DISABLE}", namespace="gateways"),
        cause="DestinationRule/gateways/gw-strict",
    ),
    _entering(
        "gw-timeout",
        serving("gw-timeout"),
        _gateway("gw-timeout", _plain("gw-timeout")),
        _led("gw-timeout", http="timeout: 150ms, TO"),
        takes=0.8,
        cause=_blaming("VirtualService", "gw-timeout"),
    ),
    _entering(
        "gw-abort",
        serving("gw-abort"),
        _gateway("gw-abort", _plain("gw-abort")),
        _led("gw-abort", http="fault: {abort: {httpStatus: 503, percentage: {value: 100}}}, TO"),
        cause=_blaming("VirtualService", "gw-abort"),
    ),
    _entering(
        "gw-port",
        serving("gw-port"),
        _gateway("gw-port", _plain("gw-port")),
        _led("gw-port"),
        url="http://gw-port.example.com:8123/",
        door="ingress:8123",
        cause=_blaming("Gateway", "gw-port"),
    ),
    _entering(
        "gw-selector",
        serving("gw-selector"),
        _gateway("gw-selector", _plain("gw-selector").replace("80", "8124"), "gateway: ingres"),
        _led("gw-selector"),
        url="http://gw-selector.example.com:8124/",
        door="ingress:8124",
        cause=_blaming("Gateway", "gw-selector"),
    ),
    _entering(
        "gw-denied",
        serving("gw-denied"),
        _gateway("gw-denied", _plain("gw-denied")),
        _led("gw-denied"),
        """
kind: AuthorizationPolicy
metadata: {name: gw-denied, namespace: gateways}
spec:
  selector: {matchLabels: {gateway: ingress}}
  action: DENY
  rules: [{to: [{operation: {hosts: [gw-denied.example.com], ports: ["8080"]}}]}]
---
""",
        cause="AuthorizationPolicy/gateways/gw-denied",
    ),
    *(
        _entering(
            name,
            serving(name),
            _gateway(name, _plain(name)),
            _led(name),
            f"""
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: gateways}}
spec:
  selector: {{matchLabels: {{gateway: ingress}}}}
  action: DENY
  rules:
    - to: [{{operation: {{hosts: [{name}.example.com], ports: ["8080"]}}}}]
      from: [{{source: {{remoteIpBlocks: [{block}]}}}}]
---
""",
            headers={"x-forwarded-for": "203.0.113.9"},
            cause=cause,
        )
        for name, block, cause in (
            ("gw-client", "$(outer)", "AuthorizationPolicy/gateways/gw-client"),
            ("gw-claimed-client", "203.0.113.0/24", ""),
        )
    ),
    _entering(
        "gw-token",
        serving("gw-token"),
        _gateway("gw-token", _plain("gw-token")),
        _led("gw-token"),
        f"""
kind: RequestAuthentication
metadata: {{name: gw-token, namespace: gateways}}
spec:
  selector: {{matchLabels: {{gateway: ingress}}}}
  jwtRules: [{{issuer: '{VISITORS.issuer}', jwks: '{VISITORS.jwks}'}}]
---
""",
        headers={"authorization": f"Bearer {VISITORS.token(exp=1_700_000_000)}"},
        cause="RequestAuthentication/gateways/gw-token",
    ),
    _entering(
        "gw-limit",
        serving("gw-limit"),
        _gateway("gw-limit", f"    - {{hosts: [gw-limit.example.com], port: {_HTTP.replace('80', '8090')}}}"),
        _led("gw-limit"),
        limiting("gw-limit", "GATEWAY", "gateway: ingress", "gateways", 8090),
        url="http://gw-limit.example.com:8090/",
        door="ingress:8090",
        earlier=1,
        cause="EnvoyFilter/gateways/gw-limit",
    ),
)


def _certified(
    name: str, *, mode: str = "SIMPLE", credential: str | None = None, host: str = "", **more: object
) -> dict[str, object]:
    held = secret(name, f"{name}.example.com", ca=mode == "MUTUAL") if credential is None else credential
    return _entering(
        name,
        serving(name),
        held,
        _gateway(name, _tls(name, mode, host)),
        _led(name),
        **{"door": SECURE, "cause": _blaming("Gateway", name), **more},
    )


def _papers(authority: Authority) -> dict[str, str]:
    certificate, key = authority.issue("someone.example.com")
    return {"certificate": certificate, "key": key}


SECURED = of_family(
    "SNI",
    _certified("sni-unknown", host="other-sni-unknown.example.com"),
    _certified("sni-secret", credential=""),
    _certified("sni-uncertified", mode="MUTUAL"),
    _certified(
        "sni-expired",
        credential=secret("sni-expired", "sni-expired.example.com", lapsed=True),
        cause="Secret/gateways/sni-expired",
    ),
    _certified("sni-names", credential=secret("sni-names", "other.example.com"), cause="Secret/gateways/sni-names"),
    _certified(
        "sni-secret-space", credential=secret("sni-secret-space", "sni-secret-space.example.com", namespace=HOME)
    ),
    _entering(
        "sni-passthrough",
        serving("sni-passthrough", port=443, port_name="tls", target=8443),
        _gateway("sni-passthrough", _tls("sni-passthrough", "PASSTHROUGH")),
        """
kind: VirtualService
metadata: {name: sni-passthrough}
spec:
  hosts: [sni-passthrough.example.com]
  gateways: [sni-passthrough]
  tls: [{match: [{port: 443, sniHosts: [sni-pasthrough.example.com]}], route: [{destination: {host: sni-passthrough}}]}]
---
""",
        door=SECURE,
        cause=_blaming("VirtualService", "sni-passthrough"),
    ),
    _entering("sni-stranger", url="https://sni-stranger.example.org/", door=SECURE),
    _entering(
        "sni-plaintext",
        serving("sni-plaintext"),
        secret("sni-plaintext", "sni-plaintext.example.com"),
        _gateway("sni-plaintext", _tls("sni-plaintext", "SIMPLE", port=8445)),
        _led("sni-plaintext"),
        url="http://sni-plaintext.example.com:8445/",
        door="ingress:8445",
        cause=_blaming("Gateway", "sni-plaintext"),
    ),
    _entering(
        "sni-tls-to-plain",
        serving("sni-tls-to-plain"),
        _gateway("sni-tls-to-plain", _plain("sni-tls-to-plain").replace("80", "8091")),
        _led("sni-tls-to-plain"),
        url="https://sni-tls-to-plain.example.com:8091/",
        door="ingress:8091",
        cause=_blaming("Gateway", "sni-tls-to-plain"),
    ),
)


def _leaving(name: str, gateway_host: str = "", http: str = "") -> str:
    host = f"{name}.example.com"
    return f"""
kind: ServiceEntry
metadata: {{name: {name}}}
spec:
  hosts: [{host}]
  ports: [{{number: 80, name: http, protocol: HTTP, targetPort: 8080}}]
  location: MESH_EXTERNAL
  resolution: STATIC
  endpoints: [{{address: $(outer)}}]
---
{_gateway(name, _plain(name, gateway_host), "gateway: egress")}
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{host}]
  gateways: [mesh, {name}]
  http:
    - match: [{{gateways: [mesh]}}]
      route: [{{destination: {{host: egress.gateways.svc.cluster.local, port: {{number: 80}}}}}}]
    - match: [{{gateways: [{name}]{http}}}]
      route: [{{destination: {{host: {host}}}}}]
---
"""


EGRESS = of_family(
    "EGRESS",
    fault(
        "out-host",
        _leaving("out-host", "other-out-host.example.com"),
        url="http://out-host.example.com/",
        cause=_blaming("Gateway", "out-host"),
    ),
    fault(
        "out-path",
        _leaving("out-path", "", ", uri: {prefix: /api}"),
        url="http://out-path.example.com/",
        cause=_blaming("VirtualService", "out-path"),
    ),
    fault("out-well", _leaving("out-well"), url="http://out-well.example.com/"),
)

WELL = of_family(
    "healthy",
    _entering("gw-well", serving("gw-well"), _gateway("gw-well", _plain("gw-well")), _led("gw-well")),
    _entering(
        "gw-redirected",
        _gateway(
            "gw-redirected",
            f"    - {{hosts: [gw-redirected.example.com], port: {_HTTP}, tls: {{httpsRedirect: true}}}}",
        ),
    ),
    _entering(
        "gw-wildcard",
        serving("gw-wildcard"),
        _gateway("gw-wildcard", _plain("gw-wildcard", '"*.gw-wildcard.example.com"')),
        _led("gw-wildcard", host="a.gw-wildcard.example.com"),
        url="http://a.gw-wildcard.example.com/",
    ),
    _entering(
        "gw-mutual-inside",
        serving("gw-mutual-inside", "locked", selector="app: locked"),
        _gateway("gw-mutual-inside", _plain("gw-mutual-inside")),
        _led("gw-mutual-inside", to="gw-mutual-inside.locked.svc.cluster.local"),
    ),
    _certified("sni-well", cause=""),
    _certified("sni-mutual", mode="MUTUAL", cause="", papers=_papers(ROOT)),
    _entering(
        "sni-passed",
        serving("sni-passed", port=443, port_name="tls", target=8443),
        _gateway("sni-passed", _tls("sni-passed", "PASSTHROUGH", "sni-passed.example.com")),
        """
kind: VirtualService
metadata: {name: sni-passed}
spec:
  hosts: [sni-passed.example.com]
  gateways: [sni-passed]
  tls: [{match: [{port: 443, sniHosts: [sni-passed.example.com]}], route: [{destination: {host: sni-passed}}]}]
---
""",
        door=SECURE,
    ),
)
STRANGE = of_family("SNI", _certified("sni-strange", mode="MUTUAL", papers=_papers(OTHER)))
FAULTS = (*ROUTED, *SECURED, *STRANGE, *EGRESS, *WELL)
