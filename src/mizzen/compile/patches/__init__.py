"""Patches: what EnvoyFilters change in resources that are otherwise finished.

Flow: `model.envoy_filters` and `model.wasm` select what is for a proxy, and `application` hands it on. `extensions`
puts the filters of Wasm and Lua into finished listeners, and serves what is fetched by name. `values` reads each patch
once into a message of Envoy; `clusters`, `listeners` (with `chains` and `filters`) and `routes` apply them to pristine
resources. A patched resource is a query over the pristine one and the patches that touch it:
proxies without any share the pristine sets, and a change of one patch re-runs only what it touches.

    values      one patch as a message, and the Problems of one that cannot be read
    opaque      types that pass through unread, as TypedStructs
    matching    which listener, chain, filter, cluster, route configuration, virtual host or route a patch means
    merging     how a patch's message goes into another
    sequences   where an added element goes
    trial       leaves out patches that the proxy's Envoy would refuse
    refusals    what is known of Envoy's refusals
    forms       fields that upstream Envoy has elsewhere than EnvoyFilters look for them

Two dialects: towards Istio's proxies a patch does what the reference does, sensible or not. Towards upstream Envoy,
which must accept all that it is sent, a patch whose outcome Envoy would refuse is left out with a Problem.
"""
