"""Annotations of ingress-nginx as settings, group by group.

redirects   redirects of all kinds
requests    rewriting of paths, hosts and headers; snippets
cors        cross-origin sharing
upstreams   protocol, TLS, balancing and timeouts towards backends
access      addresses, external authentication, clients' certificates
canaries    canary Ingresses
catalogue   annotations without a counterpart, and those that need none
ingress     one Ingress with all its settings
"""
