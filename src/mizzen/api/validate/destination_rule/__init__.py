"""The rules of DestinationRule, parts of which hold for Sidecars and the mesh config too.

rule        hosts, subsets and ports
policies    a traffic policy: pools, outlier detection, tunnels, TLS towards the destination
balancing   load balancing: hashing, localities, warm-up
"""
