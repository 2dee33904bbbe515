"""The workload's identity: keys, certificates and roots, and how they reach Envoy.

`keys` is the cryptography, `certificates` the life of a certificate, `sds` the server from which Envoy takes secrets.
"""
