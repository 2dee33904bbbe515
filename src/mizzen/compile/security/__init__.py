"""Who may call: AuthorizationPolicies and RequestAuthentications as Envoy's filters.

    matching        values with stars, as string matchers
    trust_domains   principals rewritten for every trust domain of the mesh
    permissions     what is called: operations and destination conditions
    principals      who calls: sources and source conditions
    rules           one rule of a policy as an RBAC policy
    authorization   policies by action as RBAC filters, HTTP and TCP
    external        CUSTOM policies: RBAC in shadow and the external authorizer behind it
    tokens          RequestAuthentications as one JWT filter

Security fails closed. What cannot be matched (a bad address, an attribute of HTTP on a TCP port) drops an ALLOW rule
and widens a DENY rule; a policy that cannot be compiled at all denies everything.
Mutual TLS modes are not here: they shape chains, see `listeners`.
"""
