"""Settings come from the environment once, under Istio's names; what is not followed warns."""

import pytest

from mizzen import settings


def test_empty_environment_gives_the_defaults_of_the_reference() -> None:
    loaded, warnings = settings.load({})
    assert loaded == settings.Settings()
    assert (loaded.push.debounce_after, loaded.push.debounce_max) == (0.1, 10.0)
    assert (loaded.authority.default_ttl, loaded.authority.max_ttl) == (86_400, 7_776_000)
    assert loaded.features.trace_sampling == 1.0
    assert warnings == ()


def test_variables_set_their_fields() -> None:
    loaded, warnings = settings.load(
        {
            "PILOT_DEBOUNCE_AFTER": "250ms",
            "PILOT_DEBOUNCE_MAX": "1m0.5s",
            "PILOT_ENABLE_EDS_DEBOUNCE": "0",
            "PILOT_PUSH_THROTTLE": "7",
            "ISTIO_DUAL_STACK": "TRUE",
            "TOKEN_AUDIENCES": "istio-ca, vault",
            "MAX_WORKLOAD_CERT_TTL": "48h",
            "PILOT_TRACE_SAMPLING": "12.5",
        }
    )
    assert loaded.push == settings.Push(debounce_after=0.25, debounce_max=60.5, debounce_endpoints=False, throttle=7)
    assert loaded.features == settings.Features(dual_stack=True, trace_sampling=12.5)
    assert loaded.authority.audiences == ("istio-ca", "vault")
    assert loaded.authority.max_ttl == 48 * 3600
    assert warnings == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PILOT_HTTP10", "flase"),
        ("XDS_AUTH", "2"),
        ("PILOT_DEBOUNCE_AFTER", "10"),
        ("PILOT_DEBOUNCE_AFTER", "-1s"),
        ("PILOT_DEBOUNCE_AFTER", "1s rubbish"),
        ("PILOT_PUSH_THROTTLE", "-3"),
        ("PILOT_TRACE_SAMPLING", "101"),
        ("PILOT_MAX_REQUESTS_PER_SECOND", "inf"),
        ("PILOT_MAX_REQUESTS_PER_SECOND", "nan"),
        ("SECRET_GRACE_PERIOD_RATIO", "1.5"),
    ],
)
def test_value_that_does_not_parse_keeps_the_default_and_warns(name: str, text: str) -> None:
    loaded, warnings = settings.load({name: text})
    assert loaded == settings.Settings()
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{name}: ")


@pytest.mark.parametrize(("text", "wanted"), [("true", True), ("false", False), ("auto", None), ("", None)])
def test_native_sidecars_are_on_off_or_by_the_cluster(text: str, wanted: bool | None) -> None:
    found, warnings = settings.load({"ENABLE_NATIVE_SIDECARS": text})
    assert (found.injection.native_sidecars, warnings) == (wanted, ())


def test_unknown_feature_flag_warns_that_it_is_not_supported() -> None:
    _, warnings = settings.load({"PILOT_ENABLE_NEW_THING": "true", "PILOT_ENABLE_AMBIENT": "true"})
    assert warnings == (
        "PILOT_ENABLE_AMBIENT is not supported and has no effect",
        "PILOT_ENABLE_NEW_THING is not supported and has no effect",
    )


@pytest.mark.parametrize(
    ("name", "default", "other"),
    [
        ("PILOT_ENABLE_GATEWAY_API", "true", "false"),
        ("PILOT_ENABLE_ALPHA_GATEWAY_API", "false", "true"),
        ("PILOT_GATEWAY_API_DEFAULT_GATEWAYCLASS_NAME", "istio", "mesh"),
        ("ENABLE_SELECTOR_BASED_K8S_GATEWAY_POLICY", "true", "false"),
        ("PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS", "false", "true"),
    ],
)
def test_switches_of_the_gateway_api_and_of_policies_are_known(name: str, default: str, other: str) -> None:
    assert settings.load({name: default})[1] == ()
    assert settings.load({name: other})[1] == (f"{name} is not supported and has no effect",)


def test_flag_set_to_the_default_of_the_reference_is_silent() -> None:
    assert settings.load({"PILOT_ENABLE_AMBIENT": "False", "PILOT_CERT_PROVIDER": "istiod"})[1] == ()


@pytest.mark.parametrize(
    "name",
    [
        "ISTIO_META_DNS_CAPTURE",
        "ISTIO_METAJSON_LABELS",
        "ISTIO_CPU_LIMIT",
        "ISTIO_INGRESSGATEWAY_SERVICE_HOST",
        "ISTIO_INGRESSGATEWAY_SERVICE_PORT_HTTP2",
        "ISTIO_INGRESSGATEWAY_PORT",
        "ISTIO_INGRESSGATEWAY_PORT_80_TCP_ADDR",
        "PATH",
    ],
)
def test_variables_that_are_no_flags_are_silent(name: str) -> None:
    assert settings.load({name: "x"})[1] == ()
