"""Manifests of what a migration gives, as plain documents.

documents             names, metadata and references that all of them share
gateways              the Gateway with its listeners, grants for certificates, Istio Gateways
http_routes           rules as HTTPRoutes
virtual_services      rules as VirtualServices
destination_rules     how backends are spoken to
authorization         who may come in
"""
