"""Migration: Ingresses with the annotations of ingress-nginx become objects of the Gateway API and of Istio.

    Ingresses ──reading──> settings of each Ingress, and a finding for each annotation
        ──servers──> nginx's view: hosts, each with its locations in the order in which nginx tries them
        ──rules──> what happens to requests, by scheme: one rule for each condition, in order
        ──writing──> Gateway, HTTPRoutes, VirtualServices, DestinationRules, AuthorizationPolicies

The one entry is `ingress.migrate(objects, options) -> Migration`. A host becomes HTTPRoutes if these can say all that
nginx does there; otherwise, as with regular expressions, a VirtualService on an Istio Gateway that the same proxies
serve. Every annotation that was found is told as exact, approximated (and how) or impossible. Pure: objects in,
documents and findings out.
"""
