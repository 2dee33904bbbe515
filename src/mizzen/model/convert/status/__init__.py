"""Statuses: what conversion found, as the conditions of the Gateway API.

    conditions  one condition, and how true and false ones are made
    gateways    GatewayClass, Gateway, ListenerSet
    routes      HTTPRoute, GRPCRoute, TCPRoute, TLSRoute
    policies    BackendTLSPolicy
    objects     the status of any object by its key, and of all

Nothing is found here that conversion did not find: a status reads the same queries that what is served follows from.
"""
