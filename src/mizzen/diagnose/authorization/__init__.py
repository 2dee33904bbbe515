"""Whether AuthorizationPolicies let a request pass, decided from the objects themselves.

    request       what is known of one request or connection
    workload      where it arrives: the workload, and what of the mesh matters for its policies
    decision      the answer: by which rule, what came closest, who would be asked, what a dry run says
    evaluation    the policies that apply, action by action: the entry
    rules         one rule held against one request, field by field
    attributes    the fields of rules: what of a request each is about, and when a value of it matches
    identities    principals, namespaces, service accounts and trust domains
    tokens        request principals and claims
    texts         values with stars, addresses, ports
    templates     paths with `{*}` and `{**}`
    paths         the path of a request as Envoy hands it to policies

Nothing here knows the RBAC that `compile` makes of the same objects, and no matching is shared with it: that the two
agree, with a real Envoy in between, is the proof of both (`tests/attacks/test_truth_table.py`).
"""
