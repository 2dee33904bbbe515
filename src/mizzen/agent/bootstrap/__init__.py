"""What Envoy is started with: pure functions from the pod's facts to one JSON document.

`proxy_config` merges ProxyConfig, `node` says who the proxy is, `stats` which statistics it keeps, and `document` puts
the bootstrap together. Nothing here reads a file or an environment.
"""
