"""What can have gone wrong, as a table: what a cause is called, which link breaks, whom to look at, what to do.

In: a cause's code. Out: `Explanation`. `kinds` are the kinds of objects that are at fault, the likeliest first; the
question is what decides whether it is so. Which entry tells of which cause is in `rules`. A table, and one piece
however long: it is looked up by code.
"""

from collections.abc import Mapping
from typing import NamedTuple

VS, DR, GW, SVC, SE = "VirtualService", "DestinationRule", "Gateway", "Service", "ServiceEntry"
AP, RA, PA, EF, SC = "AuthorizationPolicy", "RequestAuthentication", "PeerAuthentication", "EnvoyFilter", "Sidecar"


class Explanation(NamedTuple):
    """One cause in words."""

    title: str
    link: str
    """The link that breaks, in the words of `trace`; empty where the answer is the program's or the client's own."""
    kinds: tuple[str, ...]
    question: str
    remedy: str


CAUSES: Mapping[str, Explanation] = {
    # -- the listener and the filter chain
    "plain-to-strict": Explanation(
        "a server that takes mutual TLS only meets plain text, or TLS that is not the mesh's",
        "tls",
        (DR, PA),
        "does a DestinationRule set tls.mode for this host, and has the client a sidecar?",
        "leave tls.mode to auto-mTLS; give the client a sidecar; or make the port PERMISSIVE",
    ),
    "tls-unknown-to-server": Explanation(
        "TLS that is not the mesh's reaches a sidecar that has no filter chain for it",
        "tls",
        (DR, PA),
        "who speaks TLS here: the program itself, or a DestinationRule with tls.mode SIMPLE?",
        "call in plain text and let the sidecars encrypt, or name the Service's port tls",
    ),
    "no-server-name": Explanation(
        "no server of the gateway takes this server name, or this kind of connection",
        "filter_chain",
        (GW,),
        "is the name among the hosts of a server with TLS on this port, and is its Secret there?",
        "add the host to a server of the Gateway, or call with a name that it has",
    ),
    # -- routes
    "no-route": Explanation(
        "no route takes the request",
        "route",
        (VS, GW),
        "does a VirtualService have this host, is it bound to this gateway, and does a match take the path?",
        "add the host, bind the VirtualService, or add a route without match as the last",
    ),
    "routes-not-there": Explanation(
        "the proxy has no route configuration yet",
        "route",
        (),
        "is the proxy SYNCED in proxy-status?",
        "wait for the push; if it stays so, see what the proxy refused",
    ),
    "registry-only": Explanation(
        "the destination is not known, and outboundTrafficPolicy lets only known ones be called",
        "route",
        (SE, SC),
        "is there a ServiceEntry for the host, and is it exported and in the Sidecar's egress hosts?",
        "add a ServiceEntry, or set outboundTrafficPolicy to ALLOW_ANY",
    ),
    "direct-response": Explanation(
        "a route answers by itself",
        "route",
        (VS,),
        "which route has directResponse or a redirect?",
        "change the route if the answer is not meant",
    ),
    # -- clusters and endpoints
    "no-cluster": Explanation(
        "the route leads to a cluster that the proxy does not have: a subset, host or port that is not there",
        "cluster",
        (VS, DR),
        "is the subset in a DestinationRule that the client sees?",
        "add the subset to a DestinationRule, or correct the destination of the route",
    ),
    "empty-subset": Explanation(
        "no ready pod has the labels of the subset",
        "endpoint",
        (DR, SVC),
        "do pods of the Service have these labels, and are they ready?",
        "correct the subset's labels or the pods'",
    ),
    "no-endpoint": Explanation(
        "the Service has no endpoint that may be chosen",
        "endpoint",
        (SVC, SE, DR),
        "does the Service's selector meet ready pods, or has outlier detection ejected all?",
        "correct the selector or the target port, or see why the pods are not ready",
    ),
    "overflow": Explanation(
        "a circuit breaker is open: more connections or requests than connectionPool allows",
        "endpoint",
        (DR,),
        "which limits does the DestinationRule of the host set?",
        "raise the limits of connectionPool, or send less",
    ),
    "name-unresolved": Explanation(
        "the host's name does not resolve",
        "endpoint",
        (SE,),
        "does the name resolve from the proxy's pod?",
        "correct the host of the ServiceEntry, or the cluster's DNS",
    ),
    "dropped": Explanation(
        "requests are dropped on purpose, by the endpoints' drop percentage or maintenance mode",
        "endpoint",
        (EF,),
        "who sets drop_overload?",
        "take the drop away",
    ),
    # -- connections
    "program-refuses": Explanation(
        "nothing listens in the pod on the port that the Service names",
        "application",
        (SVC,),
        "on which port and address does the program listen?",
        "correct targetPort, or have the program listen on all addresses",
    ),
    "refused": Explanation(
        "the endpoint refuses the connection",
        "connection",
        (SVC, SE),
        "is the pod up, and does something listen on the endpoint's port?",
        "correct targetPort, or the port of the ServiceEntry, or see why the pod is down",
    ),
    "connect-timeout": Explanation(
        "the endpoint does not answer the connection",
        "connection",
        (DR, SE),
        "does a network policy, a firewall or a dead node stand between?",
        "open the way; or raise connectTimeout of the DestinationRule if the way is long",
    ),
    "unreachable": Explanation(
        "the network has no way to the endpoint",
        "connection",
        (SE, SVC),
        "is the endpoint's address right, and routed from this node?",
        "correct the address, or the route or firewall that rejects it",
    ),
    "reset-at-connect": Explanation(
        "the endpoint resets the connection while it is being made",
        "connection",
        (SVC, SE),
        "what listens there, and does it expect something else than it gets?",
        "see the endpoint's own log",
    ),
    "local-connect": Explanation(
        "this proxy cannot even begin a connection: no free port, or an address that it cannot use",
        "connection",
        (DR,),
        "how many connections are open, and of which family is the address?",
        "raise reuse of connections, or correct the address family",
    ),
    "connect-failed": Explanation(
        "no connection to the endpoint",
        "connection",
        (SVC, SE),
        "is the endpoint's address reachable from the client's pod?",
        "see the transport failure reason, if there is any",
    ),
    # -- TLS to the upstream
    "tls-to-plain": Explanation(
        "the client's proxy speaks TLS and the server answers in plain text",
        "tls",
        (DR, SVC),
        "does a DestinationRule set tls.mode, and has the server a sidecar?",
        "set tls.mode to DISABLE for a server without TLS, or give the server a sidecar",
    ),
    "tls-wrong-name": Explanation(
        "the server's certificate names somebody else than the client expects",
        "tls",
        (DR, SE),
        "which subjectAltNames are wanted, and which are in the details of the line?",
        "correct subjectAltNames or sni of the DestinationRule, or the server's service account",
    ),
    "tls-expired": Explanation(
        "a certificate has expired",
        "secret",
        (),
        "what does proxy-config secret say of NOT AFTER on both sides?",
        "see why the agent or the Secret was not renewed; check the clocks",
    ),
    "tls-untrusted": Explanation(
        "the server's certificate is not signed by the roots that the client trusts",
        "tls",
        (DR,),
        "do both sides have the same root (proxy-config rootca-compare)?",
        "distribute the same roots, or correct caCertificates of the DestinationRule",
    ),
    "tls-refused": Explanation(
        "the server refuses the client's handshake",
        "tls",
        (DR, PA),
        "does the server expect a client certificate, another name, or the mesh's own TLS?",
        "use ISTIO_MUTUAL inside the mesh; give the client the certificate that the server asks for",
    ),
    "tls-parameters": Explanation(
        "client and server have no TLS version or cipher in common",
        "tls",
        (GW, DR),
        "which versions and ciphers do both sides allow?",
        "widen minProtocolVersion, maxProtocolVersion or cipherSuites of one side",
    ),
    "secret-missing": Explanation(
        "a certificate has not been delivered to the proxy",
        "secret",
        (DR, GW),
        "does the Secret of credentialName exist in the proxy's namespace?",
        "create the Secret, or correct credentialName",
    ),
    # -- the stream
    "connection-closed": Explanation(
        "the upstream closes connections that the proxy still uses",
        "connection",
        (DR,),
        "is the program's keep-alive shorter than the proxy's idle timeout, or does it restart?",
        "raise the program's keep-alive, set http.idleTimeout of the DestinationRule below it, or retry on reset",
    ),
    "upstream-reset": Explanation(
        "the upstream resets the stream",
        "application",
        (),
        "what does the program's log say of this request?",
        "see the program, or the next proxy with the same request id",
    ),
    "local-reset": Explanation(
        "this proxy resets the stream itself",
        "filter",
        (EF,),
        "which extension or filter stops it (log level debug)?",
        "see the proxy's own log",
    ),
    "wrong-protocol": Explanation(
        "the upstream does not speak the protocol of its port",
        "application",
        (SVC, DR),
        "does the port's name or appProtocol say what the program speaks? is there h2UpgradePolicy?",
        "name the port http, http2, grpc or tcp as the program speaks",
    ),
    "truncated": Explanation(
        "the upstream ends in the middle of its answer",
        "application",
        (),
        "does the program crash or run into a limit while it answers?",
        "see the program's log",
    ),
    "timeout": Explanation(
        "the program takes longer than the route's timeout",
        "route",
        (VS,),
        "which timeout has the route, and how long does the program take?",
        "raise timeout of the route, or make the program faster",
    ),
    "try-timeout": Explanation(
        "every try takes longer than perTryTimeout",
        "route",
        (VS,),
        "which perTryTimeout has the route's retries?",
        "raise perTryTimeout, or make the program faster",
    ),
    "stream-duration": Explanation(
        "the stream lasts longer than is allowed",
        "route",
        (VS, DR, EF),
        "who sets maxStreamDuration, or maxConnectionDuration?",
        "raise it, or reconnect before",
    ),
    "idle": Explanation(
        "nothing moved on the stream for too long",
        "route",
        (EF, DR),
        "which idle timeout holds here, and does the program keep streams silent?",
        "raise the idle timeout, or send something now and then",
    ),
    "client-gone": Explanation(
        "the client closes before the answer is there",
        "",
        (),
        "is the client's own timeout shorter than the answer takes?",
        "raise the client's timeout, or make the program faster",
    ),
    "closed-here": Explanation(
        "this proxy closes the client's connection",
        "connection",
        (EF,),
        "what do the details say: idle, drained, a limit of time?",
        "raise that limit, or reconnect",
    ),
    # -- what the client sends
    "client-protocol": Explanation(
        "the client's bytes are not the protocol of the port",
        "listener",
        (SVC, GW),
        "does the client speak TLS to a port for HTTP, or another protocol than the port's name says?",
        "call with the right scheme, or correct the protocol of the port",
    ),
    "bad-request": Explanation(
        "the request itself is not acceptable",
        "listener",
        (),
        "which header or path do the details name?",
        "correct the client",
    ),
    "too-large": Explanation(
        "a header or body is larger than a filter or buffer allows",
        "filter",
        (EF, VS),
        "which limit is it: headers, buffer filter, or the buffer for retries?",
        "send less, or raise the limit",
    ),
    "old-http": Explanation(
        "the client speaks HTTP/1.0",
        "listener",
        (),
        "which client is it?",
        "set PILOT_HTTP10, or change the client",
    ),
    "slow-client": Explanation(
        "the client does not finish its request in time",
        "listener",
        (EF,),
        "does the client stall, or is the limit short?",
        "see the client",
    ),
    "upgrade-refused": Explanation(
        "the proxy does not allow this upgrade, or the upstream did not switch",
        "listener",
        (EF, SVC),
        "which upgrade does the client ask for?",
        "allow the upgrade, or correct the client",
    ),
    # -- filters
    "fault-abort": Explanation(
        "a configured fault ends the request",
        "filter",
        (VS,),
        "which route has fault.abort?",
        "remove the fault, or narrow what it matches",
    ),
    "fault-delay": Explanation(
        "a configured fault delays the request",
        "filter",
        (VS,),
        "which route has fault.delay?",
        "remove the fault, or narrow what it matches",
    ),
    "denied-by-rule": Explanation(
        "a rule of a DENY policy matches",
        "policy",
        (AP,),
        "should that rule match this request?",
        "narrow the rule, or send what it does not match",
    ),
    "denied-by-default": Explanation(
        "an ALLOW policy selects the workload and no rule allows the request",
        "policy",
        (AP,),
        "which principal, namespace, path and port arrive? is the connection mutual TLS?",
        "add a rule that allows it (mizzen authz check shows what is enforced)",
    ),
    "token": Explanation(
        "the token is refused",
        "jwt",
        (RA,),
        "do issuer, audience, expiry and key of the token fit the rule?",
        "send a token that fits, or correct the rule",
    ),
    "authorizer-denies": Explanation(
        "the external authorizer says no",
        "filter",
        (AP,),
        "what does the authorizer's log say?",
        "see the authorizer",
    ),
    "authorizer-fails": Explanation(
        "the external authorizer does not answer",
        "filter",
        (AP,),
        "are service and port of the extension provider right, and has its cluster endpoints?",
        "correct the provider, or bring the authorizer up",
    ),
    "local-limit": Explanation(
        "a local rate limit is exceeded",
        "filter",
        (EF,),
        "which token bucket does the EnvoyFilter set?",
        "raise the limit",
    ),
    "global-limit": Explanation(
        "the rate limit service says that the limit is exceeded",
        "filter",
        (EF,),
        "which descriptor is it in the service's configuration?",
        "raise the limit of the descriptor",
    ),
    "limiter-fails": Explanation(
        "the rate limit service does not answer",
        "filter",
        (EF,),
        "has the service's cluster endpoints, and is the domain right?",
        "bring the service up, or let the filter fail open",
    ),
    "filter-missing": Explanation(
        "a filter's configuration or module has not arrived",
        "filter",
        ("WasmPlugin", EF),
        "what does the agent's log say of the module's URL and secret?",
        "correct url or imagePullSecret, or set failStrategy",
    ),
    "extension": Explanation(
        "an extension breaks the request or the answer",
        "filter",
        ("WasmPlugin", EF),
        "which extension is in the chain?",
        "correct the extension",
    ),
    "overload": Explanation(
        "the proxy is overloaded and sheds work",
        "listener",
        (),
        "how much memory and how many connections has the proxy?",
        "give the proxy more, or send less",
    ),
    "health-check": Explanation(
        "the health check filter fails this proxy",
        "filter",
        (EF,),
        "who marks the proxy as failed?",
        "end the drain, or correct the filter",
    ),
    # -- beyond
    "program-answers": Explanation(
        "the program itself answers so",
        "application",
        (),
        "what does the program's log say?",
        "see the program",
    ),
    "other": Explanation(
        "a failure that the table of causes does not know",
        "",
        (),
        "what do flag and details say?",
        "look the details up in Envoy's documentation",
    ),
}
