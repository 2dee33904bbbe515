"""The rules of EnvoyFilter.

patches   what each patch names, and whether its parts go together
values    a patch's value as a message of Envoy: what does not decode, unknown fields, deprecated types
names     names of filters that Envoy has given up
"""
