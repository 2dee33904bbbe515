"""Who may call: AuthorizationPolicies and RequestAuthentications as Envoy's filters.

    applied         what applies to one workload, as filters in their places
    authorization   AuthorizationPolicies by action, HTTP and TCP
    rules           one rule as an RBAC policy
    permissions     what is called: operations and destination conditions
    principals      who calls: sources and source conditions
    matching        values with stars, as string matchers
    trust_domains   principals rewritten for every trust domain of the mesh
    rbac            RBAC filters of named policies
    external        CUSTOM policies: RBAC in shadow and the external authorizer behind it
    providers       the external authorizers of the mesh config
    tokens          RequestAuthentications as one JWT filter
    key_sets        which sets of issuers' keys Envoy reads

Security fails closed. What cannot be matched (a bad address, an attribute of HTTP on a TCP port) drops an ALLOW rule
and widens a DENY rule; a policy that cannot be compiled at all denies everything.
Mutual TLS modes are not here: they shape chains, see `listeners`.
"""
