"""The rules of the kinds of security.istio.io.

authorization        AuthorizationPolicy: actions, rules, whom and what they name
conditions           the `when` of a rule: which attributes there are and what values they take
peer_authentication  request_authentication
"""
