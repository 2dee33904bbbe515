"""What one request will meet, link by link: a simulator of Envoy over the resources themselves.

    objects ─> world_objects ─┐                      ┌─> listeners ─> filter_chains ─> network filters
    dumps   ─> world_dumps  ──┴─> World, Request ─> walk ─> http (virtual_hosts, routes, http filters)
                                                     └─> clusters ─> endpoints ─> tls ─> the next proxy …
                                                                                  └─> Answer ─> causes ─> Trace ─> tree

`walk.trace(world, request)` is the door. Resources are protobuf JSON, whether compiled here or dumped by Envoy, so one
walker serves both; here only what is looked at is compiled and printed (`told`). Where more than one thing may happen
(weights, endpoints) each is walked: if they all come to the same, the verdict is certain, else it names what it hangs
on. `causes` reasons backwards over objects why a link is missing. `Hop` and `State` carry what the walk knows at one
proxy and in one request.
"""
