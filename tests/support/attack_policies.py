"""The policies that attempts run into.

Each guards paths, ports or hosts of its own, so that an attempt meets one policy alone and its twin meets none.
`$(POD)` in them is the address of a pod.
"""

from attack_manifests import Document, documents
from attack_material import AUDIENCE, FETCHED, ISSUER, UNREACHABLE, USERS
from traffic_manifests import fill

_STRICT = """
kind: PeerAuthentication
metadata: {name: strict}
spec:
  selector: {matchLabels: {app: strict}}
  mtls: {mode: STRICT}
  portLevelMtls: {8083: {mode: DISABLE}, 8084: {mode: PERMISSIVE}}
---
kind: PeerAuthentication
metadata: {name: allow}
spec:
  selector: {matchLabels: {app: allow}}
  mtls: {mode: PERMISSIVE}
  portLevelMtls: {8084: {mode: STRICT}}
---
kind: AuthorizationPolicy
metadata: {name: strict-check}
spec:
  selector: {matchLabels: {app: strict}}
  action: CUSTOM
  provider: {name: down-closed}
  rules: [{to: [{operation: {paths: [/checked], ports: ["8083"]}}]}]
"""

_DENY = """
kind: AuthorizationPolicy
metadata: {name: deny-paths}
spec:
  selector: {matchLabels: {app: deny}}
  action: DENY
  rules: [{to: [{operation: {paths: [/private, /private/*], ports: ["8080"]}}]}]
---
kind: AuthorizationPolicy
metadata: {name: deny-hosts}
spec:
  selector: {matchLabels: {app: deny}}
  action: DENY
  rules: [{to: [{operation: {hosts: [admin.example, "admin.example:*"], ports: ["8080"]}}]}]
---
kind: AuthorizationPolicy
metadata: {name: deny-tcp}
spec:
  selector: {matchLabels: {app: deny}}
  action: DENY
  rules: [{to: [{operation: {paths: [/private], ports: ["9001"]}}]}]
---
kind: AuthorizationPolicy
metadata: {name: deny-addresses}
spec:
  selector: {matchLabels: {app: deny}}
  action: DENY
  rules:
    - from: [{source: {notIpBlocks: [$(front)]}}]
      to: [{operation: {paths: [/from-front], ports: ["8080"]}}]
---
kind: AuthorizationPolicy
metadata: {name: deny-strangers}
spec:
  selector: {matchLabels: {app: deny}}
  action: DENY
  rules:
    - from: [{source: {notPrincipals: [cluster.local/ns/vault/sa/front]}}]
      to: [{operation: {paths: [/not-strangers], ports: ["8080"]}}]
---
kind: AuthorizationPolicy
metadata: {name: deny-unknown}
spec:
  selector: {matchLabels: {app: deny}}
  action: DENY
  rules:
    - to: [{operation: {paths: [/unknown-condition], ports: ["8080"]}}]
      when: [{key: request.mood, values: [bad]}]
    - from: [{source: {ipBlocks: [somewhere]}}]
      to: [{operation: {paths: [/unreadable-address], ports: ["8080"]}}]
"""

_ALLOW = """
kind: AuthorizationPolicy
metadata: {name: allow}
spec:
  selector: {matchLabels: {app: allow}}
  action: ALLOW
  rules:
    - from: [{source: {principals: [cluster.local/ns/vault/sa/front]}}]
      to: [{operation: {paths: [/front], ports: ["8080"]}}]
    - from: [{source: {namespaces: [vault]}}]
      to: [{operation: {paths: [/namespace], ports: ["8080"]}}]
    - from: [{source: {serviceAccounts: [front]}}]
      to: [{operation: {paths: [/account], ports: ["8080"]}}]
    - to: [{operation: {paths: [/public, /public/*], ports: ["8080"]}}]
    - to: [{operation: {hosts: [public.example], paths: [/host], ports: ["8080"]}}]
    - to: [{operation: {notHosts: [admin.example, "admin.example:*"], paths: [/not-host], ports: ["8080"]}}]
    - to: [{operation: {methods: [GET], paths: [/read], ports: ["8080"]}}]
    - to: [{operation: {ports: ["8084", "9002"]}}]
    - to: [{operation: {paths: [/tcp], ports: ["9001"]}}]
    - to: [{operation: {paths: [/unknown-condition], ports: ["8080"]}}]
      when: [{key: request.mood, values: [good]}]
    - from: [{source: {ipBlocks: [anywhere]}}]
      to: [{operation: {paths: [/unreadable-address], ports: ["8080"]}}]
"""

_BROKEN = """
kind: AuthorizationPolicy
metadata: {name: broken}
spec:
  selector: {matchLabels: {app: broken}}
  action: ALLOW
  rules: everybody
---
kind: AuthorizationPolicy
metadata: {name: typo}
spec:
  selector: {matchLabels: {app: typo}}
  action: ALLOW
  rules: [{to: [{operation: {pathes: [/public]}}]}]
---
kind: PeerAuthentication
metadata: {name: typo}
spec:
  selector: {matchLabels: {app: typo}}
  mtls: {mode: SOMETIMES}
---
kind: RequestAuthentication
metadata: {name: other}
spec:
  selector: {matchLabels: {app: other}}
  jwtRules: all
---
kind: AuthorizationPolicy
metadata: {name: ruin, namespace: ruins}
spec:
  selector: [nobody]
  rules: [{}]
---
kind: AuthorizationPolicy
metadata: {name: other-check}
spec:
  selector: {matchLabels: {app: other}}
  action: CUSTOM
  provider: {name: down-open}
  rules: [{to: [{operation: {paths: [/checked], ports: ["8083"]}}]}]
"""

_TOKEN = """
kind: AuthorizationPolicy
metadata: {name: token-required}
spec:
  selector: {matchLabels: {app: token}}
  action: DENY
  rules:
    - from: [{source: {notRequestPrincipals: ["*"]}}]
      to: [{operation: {paths: [/guarded, /guarded/*], ports: ["8080"]}}]
---
kind: AuthorizationPolicy
metadata: {name: token-admin}
spec:
  selector: {matchLabels: {app: token}}
  action: DENY
  rules:
    - to: [{operation: {paths: [/admin], ports: ["8080"]}}]
      when: [{key: "request.auth.claims[role]", notValues: [admin]}]
---
kind: AuthorizationPolicy
metadata: {name: token-alice}
spec:
  selector: {matchLabels: {app: token}}
  action: DENY
  rules:
    - from: [{source: {notRequestPrincipals: ["https://users.example/alice"]}}]
      to: [{operation: {paths: [/alice], ports: ["8080"]}}]
---
kind: AuthorizationPolicy
metadata: {name: token-check}
spec:
  selector: {matchLabels: {app: token}}
  action: CUSTOM
  provider: {name: checks}
  rules: [{to: [{operation: {paths: [/checked, /checked/*], ports: ["8080"]}}]}]
"""

_GATEWAYS = """
kind: Gateway
metadata: {name: edge, namespace: gateways}
spec:
  selector: {gateway: ingress}
  servers:
    - {port: {number: 8080, name: http, protocol: HTTP}, hosts: [edge.example, admin.example]}
    - port: {number: 8443, name: https, protocol: HTTPS}
      hosts: [edge.example]
      tls: {mode: MUTUAL, credentialName: edge-tls}
---
kind: VirtualService
metadata: {name: edge, namespace: gateways}
spec:
  hosts: [edge.example, admin.example]
  gateways: [edge]
  http: [{route: [{destination: {host: deny.vault.svc.cluster.local, port: {number: 8084}}}]}]
---
kind: AuthorizationPolicy
metadata: {name: edge-deny, namespace: gateways}
spec:
  selector: {matchLabels: {gateway: ingress}}
  action: DENY
  rules:
    - to: [{operation: {hosts: [admin.example, "admin.example:*"]}}]
    - to: [{operation: {paths: [/private, /private/*]}}]
    - from: [{source: {notRemoteIpBlocks: [203.0.113.7]}}]
      to: [{operation: {paths: [/remote]}}]
    - from: [{source: {notIpBlocks: [203.0.113.7]}}]
      to: [{operation: {paths: [/direct]}}]
---
kind: Gateway
metadata: {name: thief, namespace: thieves}
spec:
  selector: {gateway: thief}
  servers:
    - {port: {number: 8080, name: http, protocol: HTTP}, hosts: [edge.example]}
    - port: {number: 8443, name: https-own, protocol: HTTPS}
      hosts: ["*"]
      tls: {mode: SIMPLE, credentialName: thief-tls}
    - port: {number: 8444, name: https-stolen, protocol: HTTPS}
      hosts: ["*"]
      tls: {mode: SIMPLE, credentialName: gateways/edge-tls}
    - port: {number: 8445, name: https-stolen-url, protocol: HTTPS}
      hosts: ["*"]
      tls: {mode: SIMPLE, credentialName: "kubernetes://gateways/edge-tls"}
    - port: {number: 8446, name: https-same-name, protocol: HTTPS}
      hosts: ["*"]
      tls: {mode: SIMPLE, credentialName: edge-tls}
---
kind: VirtualService
metadata: {name: thief, namespace: thieves}
spec:
  hosts: ["*"]
  gateways: [thief]
  http: [{route: [{destination: {host: deny.vault.svc.cluster.local, port: {number: 8084}}}]}]
---
kind: AuthorizationPolicy
metadata: {name: thief-remote, namespace: thieves}
spec:
  selector: {matchLabels: {gateway: thief}}
  action: DENY
  rules:
    - from: [{source: {notRemoteIpBlocks: [$(mallory)]}}]
      to: [{operation: {paths: [/remote]}}]
    - from: [{source: {notRemoteIpBlocks: [203.0.113.7]}}]
      to: [{operation: {paths: [/remote-elsewhere]}}]
"""


def build_policies() -> list[Document]:
    """Everything that refuses."""
    texts = (_STRICT, _DENY, _ALLOW, _BROKEN, _TOKEN, _GATEWAYS)
    return [*(item for text in texts for item in documents(text)), _request_authentication()]


def _request_authentication() -> Document:
    """Three issuers: one whose keys are stated, one whose are fetched, one whose cannot be."""
    rules = [
        {
            "issuer": ISSUER,
            "audiences": [AUDIENCE],
            "jwks": USERS.jwks,
            "fromHeaders": [{"name": "authorization", "prefix": "Bearer "}, {"name": "x-token"}],
            "fromParams": ["access_token"],
            "outputPayloadToHeader": "x-payload",
            "outputClaimToHeaders": [{"header": "x-role", "claim": "role"}],
        },
        {"issuer": FETCHED.issuer, "jwksUri": "http://$(mallory):8080/jwks.json"},
        {"issuer": UNREACHABLE.issuer, "jwksUri": "http://$(mallory):1/jwks.json"},
    ]
    spec = {"selector": {"matchLabels": {"app": "token"}}, "jwtRules": rules}
    return fill({"kind": "RequestAuthentication", "metadata": {"name": "token", "namespace": "vault"}, "spec": spec})
