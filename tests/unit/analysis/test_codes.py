"""Every code fires on the objects that have its fault and is silent on ones that are nearly the same.

`codes.yaml` has the reference's codes, `own.yaml` Mizzen's.
"""

import datetime
import pathlib
from typing import Any

import analysed
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mizzen.analysis import analyzers, catalogue
from mizzen.analysis.catalogue import CATALOGUE
from mizzen.analysis.findings import Finding
from mizzen.analysis.own_codes import OWN_CODES
from mizzen.api.meta import Key
from mizzen.incremental import Engine

HERE = pathlib.Path(__file__).parent
REFERENCE = analysed.read_yaml(HERE / "codes.yaml")
OWN = analysed.read_yaml(HERE / "own.yaml")
CASES = {**REFERENCE["codes"], **OWN["codes"]}
# What reading files finds, in tests of its own: test_analysis_files and test_analyze.
ELSEWHERE = {"MZ0001", "MZ0002", "MZ0003"}
ALL_CODES = sorted({*CATALOGUE, *OWN_CODES} - ELSEWHERE)


def _raise_for_one(db: Engine, key: Key) -> tuple[Finding, ...]:
    del db
    if key.name == "raises":
        raise KeyError(key.name)
    return ()


RAISING = analyzers.Analyzer(
    name="test.Raising", description="Raises for one Pod", checks=((("Pod",), _raise_for_one),)
)


def _certificate() -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a.com")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + datetime.timedelta(days=1))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    return {"CERTIFICATE": chain, "KEY": key.private_bytes(*form).decode()}


def _filled(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects with a real certificate where one is asked for."""
    real = _certificate()
    return [
        {**raw, "stringData": {k: real.get(v, v) for k, v in raw["stringData"].items()}} if "stringData" in raw else raw
        for raw in objects
    ]


def _input(case: dict[str, Any], which: str) -> tuple[list[dict[str, Any]], Any]:
    """The objects of one side of a pair, and what is known of a live cluster."""
    facts = case.get("facts_silent", case.get("facts")) if which == "silent" else case.get("facts")
    return case.get(which, []), facts


def _codes(case: dict[str, Any], which: str) -> set[str]:
    own, facts = _input(case, which)
    objects = _filled([*([] if case.get("bare") else REFERENCE["common"]), *own])
    engine = analysed.engine_of(
        objects, mesh=case.get("mesh"), networks=case.get("networks"), facts=facts, remote=case.get("remote", ())
    )
    found = analysed.find(engine, with_precheck=bool(case.get("precheck")), more=[RAISING])
    return {finding.code for finding in found}


def test_the_table_holds_the_reference_s_codes_and_ours_and_no_others() -> None:
    assert set(CASES) == set(ALL_CODES)
    assert set(REFERENCE["codes"]) == set(CATALOGUE)
    assert len(CATALOGUE) == 68


@pytest.mark.parametrize("code", ALL_CODES)
def test_every_code_has_input_that_fires_it_and_other_input_that_does_not(code: str) -> None:
    assert code in CASES
    fires, silent = _input(CASES[code], "fires"), _input(CASES[code], "silent")
    assert fires != silent


def test_the_common_objects_are_in_order() -> None:
    assert _codes({}, "fires") == set()


@pytest.mark.parametrize("code", ALL_CODES)
def test_code_fires(code: str) -> None:
    assert code in _codes(CASES[code], "fires")


@pytest.mark.parametrize("code", ALL_CODES)
def test_code_is_silent_on_what_is_nearly_the_same(code: str) -> None:
    found = _codes(CASES[code], "silent")
    assert code not in found
    assert "IST0001" not in found


def test_a_rule_that_fails_is_a_finding_on_its_object_and_stops_no_other() -> None:
    def failing(db: Engine, key: Key) -> tuple[Finding, ...]:
        del db
        raise KeyError(key.name)

    engine = analysed.engine_of(REFERENCE["common"])
    rule = analyzers.Analyzer(name="test.Failing", description="Fails", checks=((("Pod",), failing),))
    found = analyzers.run(engine, [rule])
    assert [finding.code for finding in found] == ["IST0001", "IST0001"]
    assert found[1].origin == "Pod shop/cart-0"
    assert found[1].message == "Internal error: test.Failing: KeyError: 'cart-0'"


def test_no_finding_without_a_fault_of_ours() -> None:
    quiet = analyzers.Analyzer(name="test.Quiet", description="Finds nothing", checks=((("Pod",), lambda *_: ()),))
    assert analyzers.run(analysed.engine_of(REFERENCE["common"]), [quiet]) == ()


def test_texts_print_as_go_prints_them() -> None:
    listed = catalogue.DEPLOYMENT_CONFLICTING_PORTS.text("shop/a", ["shop/x", "shop/y"], "80", [1, 2])
    assert listed.startswith(
        'This deployment shop/a is associated with multiple services [shop/x shop/y] using targetPort "80"'
    )
    assert listed.endswith("different ports: [1 2].")
