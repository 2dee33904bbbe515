"""What can have gone wrong before a request is on its way: listeners, endpoints, connections, TLS."""

from collections.abc import Mapping

from mizzen.diagnose.access_logs.explanation import DR, EF, GW, PA, SE, SVC, VS, Explanation

CONNECTION_CAUSES: Mapping[str, Explanation] = {
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
}
