"""What becomes of each annotation of ingress-nginx."""

import pytest
from migrations import faults, ingress, migrated, only, verdicts

from mizzen.migrate.annotations import PREFIX
from mizzen.migrate.reading import catalogue

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: answers, namespace: web}
data: {X-Answer: 42%}
"""


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"rewrite-target": "/$1"}, "exact"),
        ({"rewrite-target": "/x?y=$1"}, "approximated"),
        ({"rewrite-target": "https://else.example/$1"}, "impossible"),
        ({"rewrite-target": "/$host/$1"}, "impossible"),
        ({"use-regex": "true"}, "exact"),
        ({"ssl-redirect": "false"}, "exact"),
        ({"ssl-redirect": "true"}, "approximated"),
        ({"ssl-redirect": "true", "preserve-trailing-slash": "true"}, "exact"),
        ({"force-ssl-redirect": "true"}, "approximated"),
        ({"preserve-trailing-slash": "true"}, "exact"),
        ({"app-root": "/app"}, "exact"),
        ({"app-root": "$uri"}, "impossible"),
        ({"permanent-redirect": "https://new.example$request_uri"}, "exact"),
        ({"permanent-redirect": "https://new.example"}, "approximated"),
        ({"permanent-redirect": "https://new.example/$arg_x"}, "impossible"),
        ({"permanent-redirect": "https://new.example/?a=b"}, "impossible"),
        ({"permanent-redirect": "$scheme://$host:8443/x"}, "approximated"),
        ({"permanent-redirect-code": "308", "permanent-redirect": "https://a.b$request_uri"}, "exact"),
        ({"temporal-redirect": "http://new.example$request_uri"}, "exact"),
        ({"from-to-www-redirect": "true"}, "exact"),
        ({"upstream-vhost": "inner.example"}, "exact"),
        ({"upstream-vhost": "$host.inner"}, "impossible"),
        ({"x-forwarded-prefix": "/x"}, "exact"),
        ({"custom-headers": "web/answers"}, "exact"),
        ({"custom-headers": "web/none"}, "impossible"),
        (
            {"configuration-snippet": 'more_set_headers "A: b" "C: d;e"; # why\nproxy_set_header X $remote_addr;'},
            "exact",
        ),
        ({"configuration-snippet": "add_header A b always;\nproxy_hide_header Server;"}, "exact"),
        ({"configuration-snippet": "if ($x) { return 403; }"}, "impossible"),
        ({"configuration-snippet": "return 403;"}, "impossible"),
        ({"configuration-snippet": "proxy_set_header X $upstream_addr;"}, "impossible"),
        ({"configuration-snippet": 'more_set_headers "A: b'}, "impossible"),
        ({"mirror-target": "http://shadow.web.svc.cluster.local$request_uri"}, "approximated"),
        ({"mirror-target": "https://outside.example.com/x"}, "impossible"),
        ({"enable-cors": "true"}, "approximated"),
        ({"enable-cors": "false"}, "exact"),
        ({"cors-allow-origin": "https://a.example", "enable-cors": "true"}, "approximated"),
        ({"cors-max-age": "600"}, "exact"),
        ({"backend-protocol": "HTTPS"}, "exact"),
        ({"backend-protocol": "GRPC"}, "exact"),
        ({"backend-protocol": "AUTO_HTTP"}, "approximated"),
        ({"backend-protocol": "FCGI"}, "impossible"),
        ({"proxy-ssl-secret": "web/client"}, "approximated"),
        ({"proxy-ssl-verify": "on"}, "impossible"),
        ({"proxy-ssl-verify": "on", "proxy-ssl-secret": "web/client"}, "exact"),
        ({"proxy-ssl-name": "inner"}, "exact"),
        ({"proxy-connect-timeout": "5"}, "exact"),
        ({"proxy-read-timeout": "120"}, "approximated"),
        ({"proxy-send-timeout": "120"}, "impossible"),
        ({"proxy-next-upstream": "error http_502"}, "approximated"),
        ({"proxy-next-upstream": "off"}, "exact"),
        ({"proxy-next-upstream-tries": "1"}, "exact"),
        ({"proxy-body-size": "0"}, "exact"),
        ({"proxy-body-size": "50m"}, "approximated"),
        ({"proxy-buffering": "off"}, "exact"),
        ({"proxy-buffering": "on"}, "approximated"),
        ({"proxy-request-buffering": "off"}, "exact"),
        ({"proxy-buffer-size": "16k"}, "approximated"),
        ({"client-body-buffer-size": "1m"}, "approximated"),
        ({"proxy-http-version": "1.1"}, "exact"),
        ({"affinity": "cookie"}, "approximated"),
        ({"session-cookie-name": "route", "affinity": "cookie"}, "approximated"),
        ({"session-cookie-samesite": "Lax", "affinity": "cookie"}, "impossible"),
        ({"affinity-mode": "persistent", "affinity": "cookie"}, "approximated"),
        ({"upstream-hash-by": "$request_uri"}, "approximated"),
        ({"upstream-hash-by": "${http_x_user}"}, "approximated"),
        ({"upstream-hash-by": "$host$uri"}, "impossible"),
        ({"load-balance": "round_robin"}, "exact"),
        ({"load-balance": "ewma"}, "approximated"),
        ({"load-balance": "ip_hash"}, "impossible"),
        ({"whitelist-source-range": "10.0.0.0/8, 192.0.2.1"}, "exact"),
        ({"whitelist-source-range": "10.0.0.0/8, office"}, "approximated"),
        ({"denylist-source-range": "192.0.2.0/24"}, "exact"),
        ({"auth-url": "http://auth.web.svc.cluster.local:8080/check"}, "approximated"),
        ({"auth-url": "https://$host/oauth2/auth"}, "impossible"),
        ({"auth-signin": "https://a.b/start", "auth-url": "http://a.b/c"}, "impossible"),
        ({"auth-type": "basic", "auth-secret": "users"}, "impossible"),
        ({"auth-tls-secret": "web/ca"}, "approximated"),
        ({"auth-tls-verify-client": "off", "auth-tls-secret": "web/ca"}, "exact"),
        ({"auth-tls-pass-certificate-to-upstream": "true", "auth-tls-secret": "web/ca"}, "impossible"),
        ({"server-alias": "a.example,b.example"}, "exact"),
        ({"server-alias": "~^x.+$, b.example"}, "approximated"),
        ({"ssl-passthrough": "true"}, "exact"),
        ({"canary-weight": "10"}, "exact"),
        ({"server-snippet": "return 403;"}, "impossible"),
        ({"limit-rps": "5"}, "impossible"),
        ({"custom-http-errors": "404"}, "impossible"),
        ({"enable-modsecurity": "true"}, "impossible"),
        ({"service-upstream": "true"}, "approximated"),
        ({"enable-access-log": "false"}, "approximated"),
        ({"no-such-thing": "x"}, "impossible"),
    ],
)
def test_the_first_annotation_is_judged_and_what_is_written_is_valid(
    annotations: dict[str, str], expected: str
) -> None:
    done = migrated(ingress(annotations, secret="tls"), CONFIG_MAP)
    found = verdicts(done)
    assert found[next(iter(annotations))] == expected
    assert found.keys() >= annotations.keys()
    assert faults(done) == []


def test_every_annotation_is_judged_once_whatever_its_value() -> None:
    names = [
        *catalogue._LOST,
        *catalogue._NOT_NEEDED,
        "affinity",
        "auth-url",
        "enable-cors",
        "rewrite-target",
        "canary",
    ]
    for value in ("", "true", "7", "$x", "\N{SNOWMAN}", "a,b", "https://x/y"):
        done = migrated(ingress(dict.fromkeys(names, value)))
        subjects = [f.subject for f in done.findings if f.subject in names]
        assert sorted(subjects) == sorted(names)


def test_other_annotations_are_nobodys_business_here() -> None:
    plain = ingress()
    plain["metadata"]["annotations"] = {"example.com/x": "y", PREFIX.rstrip("/"): "z"}
    assert verdicts(migrated(plain)) == {}


# -- what they become ---------------------------------------------------------------------------------------------


def rule(annotations: dict[str, str], **more: str) -> dict[str, object]:
    (found,) = only(migrated(ingress(annotations, **more), CONFIG_MAP), "HTTPRoute")["rules"]
    return dict(found)


def test_headers() -> None:
    found = rule(
        {
            "configuration-snippet": 'more_set_headers "A: 1%";\nadd_header B 2;\nproxy_set_header C "$req_id";',
            "custom-headers": "answers",
        }
    )
    assert found["filters"] == [
        {
            "type": "RequestHeaderModifier",
            "requestHeaderModifier": {"set": [{"name": "C", "value": "%REQ(X-REQUEST-ID)%"}]},
        },
        {
            "type": "ResponseHeaderModifier",
            "responseHeaderModifier": {
                "set": [{"name": "X-Answer", "value": "42%%"}, {"name": "A", "value": "1%%"}],
                "add": [{"name": "B", "value": "2"}],
            },
        },
    ]


def test_times_and_tries() -> None:
    found = rule(
        {"proxy-read-timeout": "9", "proxy-next-upstream": "error http_502 http_503", "proxy-next-upstream-tries": "4"}
    )
    assert (found["timeouts"], found["retry"]) == ({"request": "9s"}, {"attempts": 3, "codes": [502, 503]})


def test_cross_origin_sharing() -> None:
    found = rule({"enable-cors": "true", "cors-allow-origin": "https://*.a.example,junk", "cors-max-age": "5",
                  "cors-allow-methods": "get, POST", "cors-allow-headers": "X-A", "cors-expose-headers": "X-B",
                  "cors-allow-credentials": "false"})  # fmt: skip
    assert found["filters"] == [
        {
            "type": "CORS",
            "cors": {
                "allowOrigins": ["https://*.a.example"],
                "allowMethods": ["GET", "POST"],
                "allowHeaders": ["X-A"],
                "exposeHeaders": ["X-B"],
                "maxAge": 5,
            },
        }
    ]


@pytest.mark.parametrize(
    ("annotations", "level"),
    [
        ({"backend-protocol": "HTTPS"}, {"tls": {"mode": "SIMPLE", "insecureSkipVerify": True}}),
        (
            {"backend-protocol": "GRPCS", "proxy-ssl-name": "inner", "proxy-ssl-verify": "on", "proxy-ssl-secret": "web/c"},
            {
                "connectionPool": {"http": {"h2UpgradePolicy": "UPGRADE"}},
                "tls": {"mode": "MUTUAL", "credentialName": "c", "sni": "inner", "subjectAltNames": ["inner"]},
            },
        ),
        ({"proxy-connect-timeout": "3"}, {"connectionPool": {"tcp": {"connectTimeout": "3s"}}}),
        ({"load-balance": "round_robin"}, {"loadBalancer": {"simple": "ROUND_ROBIN"}}),
        (
            {"affinity": "cookie", "session-cookie-name": "r", "session-cookie-max-age": "60"},
            {"loadBalancer": {"consistentHash": {"httpCookie": {"name": "r", "path": "/", "ttl": "60s"}}}},
        ),
        (
            {"upstream-hash-by": "$http_x_user"},
            {"loadBalancer": {"consistentHash": {"httpHeaderName": "x-user"}}},
        ),
        (
            {"upstream-hash-by": "$remote_addr", "load-balance": "ewma"},
            {"loadBalancer": {"consistentHash": {"useSourceIp": True}}},
        ),
        ({"upstream-hash-by": "$arg_u"}, {"loadBalancer": {"consistentHash": {"httpQueryParameterName": "u"}}}),
        ({"upstream-hash-by": "$cookie_u"}, {"loadBalancer": {"consistentHash": {"httpCookie": {"name": "u"}}}}),
    ],
)  # fmt: skip
def test_backends_are_spoken_to_by_the_gateway_alone(annotations: dict[str, str], level: dict[str, object]) -> None:
    found = only(migrated(ingress(annotations)), "DestinationRule")
    assert found["host"] == "front.web.svc.cluster.local"
    assert found["workloadSelector"] == {"matchLabels": {"gateway.networking.k8s.io/gateway-name": "ingress"}}
    assert found["trafficPolicy"]["portLevelSettings"] == [{"port": {"number": 80}, **level}]
