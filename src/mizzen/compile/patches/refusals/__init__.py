"""Refusals: what is known beforehand of what Envoy will not take.

A message that one of these finds fault with would be refused whole by Envoy; that none does is no promise.

    constraints  what Envoy's protobuf definitions demand of a message and of everything in it
    rules        the limits of single values among these
    shape        faults of listeners, clusters and routes whose every field is well-formed
"""
