from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbln_stack.config.defaults import DEFAULTS
from rbln_stack.config.images import make_ref
from rbln_stack.config.load import load
from rbln_stack.errors import ConfigError
from rbln_stack.profiles import PROFILES

DIGEST = "sha256:" + "a" * 64


def problems_of(raw: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(raw)
    return [str(problem) for problem in caught.value.problems]


def entry(name: str, *cards: str, **more: str) -> dict[str, Any]:
    return {"resourceName": name, "productCardNames": list(cards), **more}


BAD: list[tuple[dict[str, Any], str]] = [
    (  # S1-08
        {"toolkit": {}, "containerToolkit": {}},
        "toolkit: it is another name of containerToolkit, and both are set. Keep one.",
    ),
    (
        {"driver": {"upgradePolicy": {"podDeletion": {}, "npuPodDeletion": {}}}},
        (
            "driver.upgradePolicy.npuPodDeletion: it is another name of podDeletion, and both are "
            "set. Keep one."
        ),
    ),
    (
        {"toolkit": {"imge": {}}},
        "toolkit.imge: unknown key. Did you mean image.",
    ),
    (  # S0-85
        {"validator": {"image": {"tag": "1"}, "tag": "2", "registry": "r"}},
        (
            "validator: image is a map and says all of the image, so registry, tag must go. "
            "Correct the section."
        ),
    ),
    (
        {"validator": {"image": {"tga": "1"}}},
        "validator.image.tga: unknown key. Did you mean tag.",
    ),
    (  # S0-67
        {"driver": {"manager": {"version": 0.1}}},
        (
            "driver.manager.version: 0.1 is not allowed. Allowed: a string is needed; numbers must "
            "be quoted."
        ),
    ),
    (
        {"devicePlugin": {"resourceList": [entry("X", "RBLN-CA12", "RBLN-XX")]}},
        (
            'devicePlugin.resourceList[0].productCardNames[1]: "RBLN-XX" is no card of profile '
            "rbln. Known cards: RBLN-CA02, RBLN-CA12, RBLN-CA15, RBLN-CA22, RBLN-CA25, RBLN-CR03."
        ),
    ),
    (
        {"devicePlugin": {"resourceList": [entry("X", "RBLN-CA12"), entry("X", "RBLN-CA22")]}},
        "devicePlugin.resourceList: rebellions.ai/X is in it more than once. Join the entries.",
    ),
    (
        {"sandboxDevicePlugin": {"resourceList": [entry("X", "RBLN-CA12", "RBLN-CA12")]}},
        (
            "sandboxDevicePlugin.resourceList: RBLN-CA12 is in it more than once. "
            "Offer each card under one name only."
        ),
    ),
    (
        {"drivers": {"rbln-driver": {"enabled": False}}},
        "drivers.rbln-driver: this is the name of the section driver. Choose another name.",
    ),
    (  # S1-19
        {"drivers": {"old": {"nodeSelector": {"pool": "old"}}}},
        (
            "driver: it claims every node, also those of drivers.old, and a node takes one driver. "
            "Set driver.nodeSelector, or driver.enabled to false."
        ),
    ),
    (
        {"driver": {"enabled": False}, "drivers": {"a": {"upgradePolicy": {}}}},
        "drivers.a.upgradePolicy: unknown key. Known keys: annotations, args, catchAll, ",
    ),
    (  # S1-16
        {"driver": {"driverType": "vgpu"}},
        "driver.driverType: profile rbln has no such choice. Remove it.",
    ),
    (  # S1-17
        {"driver": {"kernelModuleType": "half-open"}},
        (
            'driver.kernelModuleType: "half-open" is not allowed. '
            "Allowed: 'auto', 'open' or 'proprietary'."
        ),
    ),
    (  # D3
        {"driver": {"usePrecompiled": True, "catchAll": True}},
        (
            "driver: catchAll serves kernels that no pool names, and usePrecompiled needs the name "
            "of each; keep one. Correct the section."
        ),
    ),
    (
        {"readiness": {"require": "0%"}},
        'readiness.require: "0%" is not allowed. Allowed: text that matches ^(all|none|',
    ),
    (
        {"readiness": {"require": {"pool": ["a"], "pools": ["b"]}}},
        "readiness.require.pool: unknown key. Did you mean pools.",
    ),
    (
        {"driver": {"env": [{"name": "A"}, {"name": "A"}]}},
        "driver.env: A is set more than once; keep one. Correct the section.",
    ),
    (
        {"daemonsets": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}},
        (
            "daemonsets.tolerations[0]: operator Exists takes no value; remove value, or set "
            "operator Equal. Correct the section."
        ),
    ),
    (
        {"daemonsets": {"tolerations": [{"key": "a b"}]}},
        'daemonsets.tolerations[0].key: "a b" is not allowed. Allowed: text that matches ',
    ),
    (
        {"driver": {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}]}},
        (
            "driver.tolerations[0]: tolerationSeconds needs effect NoExecute; NoSchedule never "
            "ends a pod. Correct the section."
        ),
    ),
    (
        {
            "driver": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "In"}]}
                        ]
                    }
                }
            }
        },
        (
            "driver.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            ".matchExpressions[0]: operator In takes at least one value, and 0 are given. "
            "Correct the section."
        ),
    ),
    (
        {"rblnDaemon": {"hostPort": 70000}},
        (
            "rblnDaemon.hostPort: 70000 is not allowed. "
            "Allowed: Input should be less than or equal to 65535."
        ),
    ),
]


@pytest.mark.parametrize(("raw", "text"), BAD)
def test_what_cannot_work_is_said(raw: dict[str, Any], text: str) -> None:
    (found,) = problems_of(raw)
    assert found.startswith(text)


def test_defaults_are_those_of_the_document_and_the_chart() -> None:  # S0-79…S0-106, X-44
    config = load({})
    assert config.driver.image_ref.reference == (
        "harbor.k8s.rebellions.in/rebellions-sw/driver:3.0.0"
    )
    assert config.driver.manager.image_ref.reference == (
        "docker.io/rebellions/rbln-k8s-driver-manager:latest"
    )
    assert config.validator.image_ref.reference == (
        "docker.io/rebellions/rbln-npu-operator-validator:latest"
    )
    assert config.container_toolkit.image_ref.reference == (
        "docker.io/rebellions/rbln-container-toolkit:latest"
    )
    assert config.device_plugin.image_ref.reference == (
        "docker.io/rebellions/k8s-device-plugin:v0.3.7"
    )
    assert (
        config.rbln_daemon.image_ref.reference == "repo.rebellions.ai/rebellions/rbln-daemon:3.0.0"
    )
    assert config.driver.manager.image_ref.floating
    assert not config.driver.image_ref.floating
    names = [f"{e.resource_prefix}/{e.resource_name}" for e in config.device_plugin.resource_list]
    assert names == ["rebellions.ai/ATOM", "rebellions.ai/REBEL"]
    assert (config.namespace, config.release_name) == ("rbln-system", "rbln-npu-operator")  # S0-52
    assert config.nfd.enabled is False
    assert config.validator.enabled
    assert config.managed_nodes.label_key.startswith("rebellions.ai/")  # S2-08
    assert not config.bootstrap.validator.enable_nvidia_fs_validation  # S2-10
    assert not config.dra_kubelet_plugin.enabled


def test_every_profile_has_defaults() -> None:
    assert sorted(DEFAULTS) == sorted(PROFILES)


def test_notations_of_an_image_mean_the_same() -> None:  # S0-85, X-15
    flat = load({"validator": {"registry": "r", "image": "a/b", "tag": "1", "pullPolicy": "Never"}})
    nested = load(
        {
            "validator": {
                "image": {"registry": "r", "repository": "a/b", "tag": "1", "pullPolicy": "Never"}
            }
        }
    )
    manager = load({"driver": {"manager": {"registry": "r", "image": "a/b", "version": "1"}}})
    assert flat.validator.image_ref == nested.validator.image_ref
    assert flat.validator.image_ref.reference == "r/a/b:1"
    assert flat.validator.image_ref.pull_policy == "Never"
    assert manager.driver.manager.image_ref.reference == "r/a/b:1"


@pytest.mark.parametrize(
    ("tag", "reference"),
    [("1", "r/a:1"), (DIGEST, f"r/a@{DIGEST}"), (f"1@{DIGEST}", f"r/a:1@{DIGEST}")],
)
def test_a_tag_may_hold_a_digest(tag: str, reference: str) -> None:
    assert make_ref("r/", "/a", tag, "Always").reference == reference


def test_both_names_of_the_toolkit_are_taken() -> None:  # S1-08
    assert not load({"toolkit": {"enabled": False}}).container_toolkit.enabled
    assert not load({"containerToolkit": {"enabled": False}}).container_toolkit.enabled


def test_driver_off_leaves_the_others_on() -> None:  # S0-53, S0-54, X-45
    config = load({"driver": {"enabled": False}})
    assert config.driver_declarations() == ()
    assert config.validator.enabled
    assert config.container_toolkit.enabled


def test_further_drivers_inherit_all_but_their_nodes() -> None:  # S1-15, DC-40
    config = load(
        {
            "driver": {
                "nodeSelector": {"pool": "new"},
                "image": {"registry": "r", "tag": "4"},
                "labels": {"a": "1"},
                "imagePullSecrets": ["x", "y"],
                "manager": {"imagePullSecrets": ["y", "z"]},
            },
            "drivers": {
                "old": {
                    "nodeSelector": {"pool": "old"},
                    "image": {"tag": "3"},
                    "labels": {"b": "2"},
                    "imagePullSecrets": [],
                }
            },
        }
    )
    first, second = config.driver_declarations()
    assert (first.name, second.name) == ("rbln-driver", "old")
    assert second.section.image_ref.reference == "r/rebellions-sw/driver:3"
    assert second.section.labels == {"a": "1", "b": "2"}
    assert second.section.node_selector == {"pool": "old"}
    assert second.section.image_pull_secrets == ()
    assert first.section.all_pull_secrets == ("x", "y", "z")  # S0-83


@pytest.mark.parametrize(
    ("require", "percent", "pools", "awaited"),
    [
        ("all", 100, (), True),
        ("none", 0, (), False),
        ("95%", 95, (), True),
        ({"pools": ["a"]}, 100, ("a",), True),
    ],
)
def test_readiness(require: Any, percent: int, pools: tuple[str, ...], *, awaited: bool) -> None:
    section = load({"readiness": {"require": require}}).readiness
    assert (section.percent, section.pools, section.awaited) == (percent, pools, awaited)


def test_an_operand_with_two_switches_needs_both() -> None:  # S2-31, S2-44
    config = load({"bootstrap": {"gfd": {"enabled": False}, "dcgmExporter": {"enabled": False}}})
    assert not config.npu_feature_discovery.enabled
    assert not config.metrics_exporter.enabled


def test_affinity_is_handed_on_with_python_names() -> None:  # S0-71
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    raw = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert load({"driver": {"nodeAffinity": raw}}).driver.node_affinity.plain() == {
        "required_during_scheduling_ignored_during_execution": {
            "node_selector_terms": ({"match_expressions": ({"key": "a", "operator": "Exists"},)},)
        }
    }


@given(st.floats(allow_nan=False) | st.integers() | st.booleans())
def test_a_tag_is_never_a_number(tag: float) -> None:  # S0-67
    for raw in (
        {"driver": {"image": {"tag": tag}}},
        {"driver": {"manager": {"version": tag}}},
        {"validator": {"tag": tag}},
    ):
        (found,) = problems_of(raw)
        assert "numbers must be quoted" in found
