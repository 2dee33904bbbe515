"""AuthorizationPolicy: its action, and the rules that trigger it.

Messages begin with the policy's name, as the reference's do. What a rule leaves out matches everything, so a part that
is there and empty is refused: who wrote it meant less than that.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from mizzen.api.policy import AuthorizationPolicy, AuthorizationPolicySpec, Operation, Rule, Source
from mizzen.api.validate.faults import Fault, Faults, at, error, warning
from mizzen.api.validate.security.conditions import (
    check_condition,
    first_fault,
    ip_block_fault,
    policy_port_fault,
)
from mizzen.api.validate.values.selectors import check_attachment, check_match_labels

_MEANINGLESS = (
    "action without `rules` is meaningless as it will never be triggered, "
    "add an empty rule `{}` if you want it be triggered for every request"
)
_DENIES_TCP = (
    "configured AuthorizationPolicy will deny all traffic to TCP ports under its scope due to the use of only HTTP "
    "attributes in a DENY rule; it is recommended to explicitly specify the port"
)
_ONE, _REST = "{*}", "{**}"
_LITERAL = re.compile(r"[a-zA-Z0-9\-._~%!$&'()+,;:@=]+")
_ACCOUNT = re.compile(r"[^/]+(?:/[^/]+)?")
_MOST_ACCOUNTS, _LONGEST_ACCOUNT = 16, 320
_NOT_FOR_CUSTOM = ("source.namespace", "source.serviceAccount", "source.trustDomain", "source.principal")


def check_authorization_policy(policy: AuthorizationPolicy, path: str) -> Faults:
    """All rules of an AuthorizationPolicy."""
    metadata = policy.metadata
    for fault in _check(policy.spec, path):
        if fault.level == "error":
            yield error(fault.path, f"invalid policy {metadata.name}.{metadata.namespace}: {fault.message}")
        else:
            yield fault


def _check(spec: AuthorizationPolicySpec, path: str) -> Faults:
    yield from check_match_labels(spec.selector, f"{path}.selector")
    yield from check_attachment(spec.selector, spec.target_ref, spec.target_refs, path)
    yield from _check_action(spec, path)
    for index, rule in enumerate(spec.rules):
        yield from _check_rule(rule, index, f"{path}.rules[{index}]")
    if spec.action == "DENY" and any(map(_denies_tcp, spec.rules)):
        yield warning(f"{path}.rules", _DENIES_TCP)


def _check_action(spec: AuthorizationPolicySpec, path: str) -> Faults:
    if spec.action in ("CUSTOM", "DENY") and not spec.rules:
        yield error(f"{path}.rules", f"{spec.action} {_MEANINGLESS}")
    if spec.action != "CUSTOM":
        if spec.provider is not None:
            message = f"`provider` must not be with non CUSTOM action, found {spec.action}"
            yield error(f"{path}.provider", message)
        return
    if spec.rules and (spec.provider is None or not spec.provider.name):
        yield error(f"{path}.provider.name", "`provider.name` must not be empty")
    for index, rule in enumerate(spec.rules):
        yield from _check_custom_rule(rule, f"{path}.rules[{index}]")


def _check_custom_rule(rule: Rule, path: str) -> Faults:
    """What an external authorizer is not asked by: identities, which its filter comes too early for."""
    for index, each in enumerate(rule.from_):
        if each.source is not None:
            for name, values in _texts_of(each.source).items():
                if values and not name.endswith("IpBlocks"):
                    here = f"{path}.from[{index}].source.{name[0].lower()}{name[1:]}"
                    yield error(here, f"From.{name} is currently not supported with CUSTOM action")
    for index, condition in enumerate(rule.when):
        if condition.key in _NOT_FOR_CUSTOM or condition.key.startswith("request.auth."):
            message = f"{condition.key} is currently not supported with CUSTOM action"
            yield error(f"{path}.when[{index}].key", message)


def _check_rule(rule: Rule, number: int, path: str) -> Faults:
    for index, each in enumerate(rule.from_):
        here = f"{path}.from[{index}].source"
        if each.source is None or each.source == Source():
            what = "nil" if each.source is None else "empty"
            yield error(here, f"`from.source` must not be {what}, found at rule {number}")
        else:
            yield from _check_source(each.source, number, here)
    for index, to in enumerate(rule.to):
        here = f"{path}.to[{index}].operation"
        if to.operation is None or to.operation == Operation():
            what = "nil" if to.operation is None else "empty"
            yield error(here, f"`to.operation` must not be {what}, found at rule {number}")
        else:
            yield from _check_operation(to.operation, here)
    for index, condition in enumerate(rule.when):
        yield from check_condition(condition, f"{path}.when[{index}]")


def _texts_of(source: Source) -> Mapping[str, Sequence[str]]:
    """What a source names, by the reference's names of its fields."""
    return {
        "Principals": source.principals,
        "NotPrincipals": source.not_principals,
        "RequestPrincipals": source.request_principals,
        "NotRequestPrincipals": source.not_request_principals,
        "Namespaces": source.namespaces,
        "NotNamespaces": source.not_namespaces,
        "ServiceAccounts": source.service_accounts,
        "NotServiceAccounts": source.not_service_accounts,
        "TrustDomains": source.trust_domains,
        "NotTrustDomains": source.not_trust_domains,
        "IpBlocks": source.ip_blocks,
        "NotIpBlocks": source.not_ip_blocks,
        "RemoteIpBlocks": source.remote_ip_blocks,
        "NotRemoteIpBlocks": source.not_remote_ip_blocks,
    }


def _check_source(source: Source, number: int, path: str) -> Faults:
    accounts = source.service_accounts or source.not_service_accounts
    others = source.principals or source.not_principals or source.namespaces or source.not_namespaces
    if accounts and others:
        message = f"cannot set serviceAccounts with namespaces or principals, found at rule {number}"
        yield error(path, message)
    for name, values in _texts_of(source).items():
        here = f"{path}.{name[0].lower()}{name[1:]}"
        yield from at(here, _empty_fault(name, values))
        if name.endswith("IpBlocks"):
            yield from at(here, first_fault(ip_block_fault(value) for value in values if value))
        elif name.endswith("TrustDomains"):
            yield from at(here, first_fault(_trust_domain_fault(value, name) for value in values))
        elif name.endswith("ServiceAccounts"):
            yield from _check_accounts(values, name, here)


def _empty_fault(name: str, values: Sequence[str]) -> str | None:
    return f"empty value not allowed, found in {name}" if "" in values else None


def _trust_domain_fault(domain: str, name: str) -> str | None:
    if domain.count("*") > 1:
        return f"at most one wildcard is allowed, found in {name}"
    if "*" in domain[1:-1]:
        return f"wildcard is only allowed at the start or end, found in {name}"
    return f"trust domain must not contain '/', found in {name}" if "/" in domain else None


def _check_accounts(accounts: Sequence[str], name: str, path: str) -> Faults:
    if len(accounts) > _MOST_ACCOUNTS:
        yield error(path, f"may not have more than {_MOST_ACCOUNTS} values, found in {name}")
    for index, account in enumerate(accounts):
        yield from at(f"{path}[{index}]", _account_fault(account, name) if account else None)


def _account_fault(account: str, name: str) -> str | None:
    if "*" in account:
        return f"wildcard not allowed, found in {name}"
    if len(account) > _LONGEST_ACCOUNT:
        return f"may not be longer than {_LONGEST_ACCOUNT} characters, found in {name}"
    if not _ACCOUNT.fullmatch(account):
        return f"expected format 'serviceAccount' or 'namespace/serviceAccount', found {account}"
    return None


def _check_operation(operation: Operation, path: str) -> Iterator[Fault]:
    fields = (
        ("Hosts", operation.hosts),
        ("NotHosts", operation.not_hosts),
        ("Ports", operation.ports),
        ("NotPorts", operation.not_ports),
        ("Methods", operation.methods),
        ("NotMethods", operation.not_methods),
        ("Paths", operation.paths),
        ("NotPaths", operation.not_paths),
    )
    for name, values in fields:
        here = f"{path}.{name[0].lower()}{name[1:]}"
        yield from at(here, _empty_fault(name, values))
        if name.endswith("Ports"):
            yield from at(here, first_fault(policy_port_fault(value) for value in values if value))
        elif name.endswith("Paths"):
            yield from at(here, first_fault(_path_fault(value, name) for value in values))


def _path_fault(written: str, name: str) -> str | None:
    """What is wrong with a path, in which `{*}` stands for one segment and `{**}`, once, for any number."""
    if "{" not in written and "}" not in written:
        return None
    path = written.strip("/")
    is_template = _ONE in written or _REST in written
    rest_found = False
    for segment in path.split("/"):
        reason = ""
        if segment in (_ONE, _REST):
            reason = f"{_REST} is not the last operator" if rest_found else ""
            rest_found = rest_found or segment == _REST
        elif "{" in segment or "}" in segment:
            reason = "Contains '{' or '}' beyond a supported path template"
        elif is_template and not _LITERAL.fullmatch(segment):
            reason = f"Contains segment {segment} with invalid string literal"
        if reason:
            return f"invalid or unsupported path {path}, found in {name}. {reason}"
    return None


def _denies_tcp(rule: Rule) -> bool:
    """Whether nothing in a rule can be told of a plain connection, which a DENY policy then refuses."""
    sources = [each.source for each in rule.from_ if each.source is not None]
    operations = [to.operation for to in rule.to if to.operation is not None]
    if operations:
        return not any(operation.ports or operation.not_ports for operation in operations)
    return bool(sources) and not any(map(_is_known_of_connections, sources))


def _is_known_of_connections(source: Source) -> bool:
    known = ("Principals", "Namespaces", "IpBlocks", "RemoteIpBlocks", "ServiceAccounts")
    texts = _texts_of(source)
    return any(texts[name] or texts[f"Not{name}"] for name in known)
