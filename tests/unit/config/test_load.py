from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbln_stack.config.load import load, stack_values
from rbln_stack.config.root import RootConfig
from rbln_stack.errors import ConfigError, Problem
from rbln_stack.profiles import PROFILES


def problems_of(raw: dict[str, Any], secret_keys: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(raw, secret_keys)
    return [str(problem) for problem in caught.value.problems]


def test_empty_config_is_complete() -> None:
    config = load({})
    assert config.profile in PROFILES
    assert config.driver.enabled
    assert config.discovery.on_missing == "fail"  # X-05


def test_profile_choices_are_the_profile_table() -> None:
    assert problems_of({"profile": "other"}) == [
        "profile: \"other\" is not allowed. Allowed: 'rbln'."
    ]
    assert sorted(PROFILES) == ["rbln"]


def test_unknown_keys_name_path_and_nearest_key() -> None:  # S0-107
    raw = {
        "drivres": {},
        "driver": {"imge": {}, "env": [{"name": "A", "valeu": "1"}], "zzz": 1},
        "daemonsets": {"toleration": []},
    }
    found = problems_of(raw)
    assert "drivres: unknown key. Did you mean drivers." in found
    assert "driver.imge: unknown key. Did you mean image." in found
    assert "driver.env[0].valeu: unknown key. Did you mean value." in found
    assert "daemonsets.toleration: unknown key. Did you mean tolerations." in found
    assert any(
        text.startswith("driver.zzz: unknown key. Known keys: annotations, ") for text in found
    )
    assert len(found) == 5


@pytest.mark.parametrize("key", ["@map", "@text", "[key]", "@0"])
def test_keys_that_look_like_the_librarys_marks_are_unknown_keys(key: str) -> None:
    assert problems_of({key: 1})[0].startswith(f"{key}: unknown key.")
    assert problems_of({"driver": {key: 1}})[0].startswith(f"driver.{key}: unknown key.")


def test_all_problems_come_at_once_with_value_and_what_is_allowed() -> None:  # DC-42
    raw = {
        "namespace": "Not Valid",
        "driver": {
            "enabled": "perhaps",
            "image": {"tag": 3.0, "pullPolicy": "Sometimes"},
            "tolerations": [{"value": "x"}],
            "env": [{"value": "x"}],
            "labels": {"a b": "c"},
            "resources": "lots",
            "imagePullSecrets": "name",
        },
        "discovery": {"timeoutSeconds": 0},
    }
    found = problems_of(raw)
    assert found == sorted(found)
    text = "\n".join(found)
    assert 'namespace: "Not Valid" is not allowed. Allowed: text that matches ^[a-z0-9]' in text
    assert 'driver.enabled: "perhaps" is not allowed. Allowed: true or false is needed.' in text
    assert (
        "driver.image.tag: 3.0 is not allowed. Allowed: a string is needed; numbers must be quoted."
    ) in text  # S0-67
    assert (
        'driver.image.pullPolicy: "Sometimes" is not allowed. '
        "Allowed: 'Always', 'IfNotPresent' or 'Never'."
    ) in text  # S0-68
    assert (
        "driver.tolerations[0]: a toleration without key must have operator Exists, or it accepts "
        "nothing. Correct the section."
    ) in text
    assert "driver.env[0].name: it is required. Set it." in text
    assert 'driver.labels.a b: "a b" is not allowed.' in text
    assert 'driver.resources: "lots" is not allowed. Allowed: a map is needed.' in text
    assert 'driver.imagePullSecrets: "name" is not allowed. Allowed: a list is needed.' in text
    assert (
        "discovery.timeoutSeconds: 0 is not allowed. Allowed: Input should be greater than 0."
        in text
    )
    assert len(found) == 10


def test_error_text_has_a_title_and_one_line_per_problem() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"a1": 1, "b1": 2})
    assert str(caught.value).splitlines()[0] == "the stack config is not valid:"
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            {"driver": {"usePrecompiled": True, "image": {"tag": "sha256:" + "0" * 64}}},
            (
                "driver: usePrecompiled completes image.tag with kernel and OS, so "
                "image.tag must be a "
                "version and not a digest. Correct the section."
            ),  # S0-16
        ),
        (
            {"discovery": {"source": "snapshot"}},
            "discovery: source snapshot needs snapshot, the path of the file. Correct the section.",
        ),
        (
            {"discovery": {"snapshot": "x.json"}},
            (
                "discovery: snapshot is only read with source snapshot; set source or "
                "remove snapshot. "
                "Correct the section."
            ),
        ),
        (
            {
                "driver": {
                    "env": [
                        {"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
                    ]
                }
            },
            (
                "driver.env[0]: variable A has both value and valueFrom; keep one. "
                "Correct the section."
            ),
        ),
        (
            {"driver": {"env": [{"name": "A", "valueFrom": {}}]}},
            (
                "driver.env[0].valueFrom: valueFrom needs exactly one of secretKeyRef, "
                "configMapKeyRef, "
                "fieldRef, resourceFieldRef. Correct the section."
            ),
        ),
    ],
)
def test_rules_across_fields_say_why(raw: dict[str, Any], text: str) -> None:
    assert problems_of(raw) == [text]


def test_secret_values_are_refused_and_never_shown() -> None:  # DC-41
    found = problems_of({"driver": {"enabled": "hunter2"}}, ("driver",))
    assert "hunter2" not in "\n".join(found)
    assert found[0].startswith("driver: it is encrypted, but no key of this stack takes a secret")
    assert "driver.enabled: (secret) is not allowed. Allowed: true or false is needed." in found


def test_long_values_are_cut() -> None:
    (text,) = problems_of({"driver": "x" * 500})
    assert len(text) < 150


def test_stack_values_keeps_own_keys_and_parses_maps() -> None:
    values = stack_values(
        {
            "rbln-stack:driver": json.dumps({"enabled": False}),
            "rbln-stack:context": "dev",
            "rbln-stack:namespace": "{not json",
            "kubernetes:namespace": "other",
        },
        "rbln-stack",
    )
    assert values == {"driver": {"enabled": False}, "context": "dev", "namespace": "{not json"}


def test_seed_keys_are_taken_unchanged() -> None:  # S0-60, S0-64…S0-78
    config = load(
        {
            "driver": {
                "enabled": True,
                "image": {
                    "registry": "harbor.k8s.rebellions.in",
                    "repository": "rebellions-sw/driver",
                    "tag": "3.0.0",
                    "pullPolicy": "IfNotPresent",
                },
                "imagePullSecrets": ["regcred"],
                "nodeSelector": {},
                "tolerations": [],
                "labels": {},
                "annotations": {},
                "priorityClassName": "",
                "resources": {},
                "args": [],
                "env": [],
            }
        }
    )
    assert config.driver.image_pull_secrets == ("regcred",)


def test_quantities_may_be_numbers() -> None:
    config = load({"driver": {"resources": {"requests": {"cpu": 1, "memory": "40Mi"}}}})
    assert config.driver.resources.plain() == {"requests": {"cpu": "1", "memory": "40Mi"}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
known = st.sampled_from([field.alias or "" for field in RootConfig.model_fields.values()])


@given(st.dictionaries(known | st.text(max_size=8), json_values, max_size=4))
def test_anything_is_loaded_or_explained(raw: dict[str, Any]) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        first = load(raw)
    except ConfigError as error:
        problems = error.problems
    else:
        assert load(raw) == first
    assert all(problem.subject and problem.what and problem.remedy for problem in problems)
