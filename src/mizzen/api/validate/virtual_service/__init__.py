"""The rules of VirtualService.

service       hosts, gateways and what a delegate may not have
matches       conditions on requests
http          one HTTP route: its parts and which exclude each other
actions       redirects, rewrites, direct responses, retries, mirrors, faults, cross-origin sharing
streams       TLS and TCP routes
destinations  where traffic goes, and weights
reachability  warnings of rules and matches that nothing reaches
"""
