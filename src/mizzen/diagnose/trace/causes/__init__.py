"""Reasoning backwards: which object is behind a link that breaks, and what mends it.

    find        the door: by what the answer is about
    found       the value, and what every reasoning may ask of the world
    hosts       why a host, a port, a subset is not there for a client
    pods        why a cluster has no endpoints, why nothing listens
    gateways    why a gateway does not serve a host, a port, a name
    security    mutual TLS, tokens, policies, secrets

Each looks at objects only: what Envoy does is settled by then. Where only dumps are at hand there are no objects, and
the cause is what the resources' own metadata name.
"""
