from __future__ import annotations

from rbln_stack.profiles import RBLN
from rbln_stack.rbac import RIGHTS, Rule, rules

ALL = [rule for rights in RIGHTS.values() for rule in (*rights.namespaced, *rights.cluster)]


def test_no_wildcards_and_no_secrets() -> None:
    for rule in ALL:
        assert "*" not in (rule.group, *rule.resources, *rule.verbs)
        assert "secrets" not in rule.resources


def test_group_of_the_declarations_is_the_profile_s() -> None:
    groups = {rule.group for rule in ALL} - {"", "apps"}
    assert groups == {RBLN.label_domain}


def test_driver_may_pause_and_evict_and_no_more() -> None:
    assert RIGHTS["driver"].namespaced == ()
    assert [(rule.resources, rule.verbs) for rule in RIGHTS["driver"].cluster] == [
        (("nodes",), ("get", "list", "watch", "patch", "update")),
        (("pods",), ("get", "list", "watch")),
        (("pods/eviction",), ("create",)),
        (("daemonsets",), ("get",)),
    ]


def test_only_status_is_written_by_the_controller() -> None:  # D1
    writing = [rule for rule in RIGHTS["node-state"].cluster if "patch" in rule.verbs]
    assert all(resource.endswith("/status") for rule in writing for resource in rule.resources)


def test_operands_without_api_access_have_no_rights() -> None:
    for operand in ("device-plugin", "npu-feature-discovery", "rbln-daemon", "metrics-exporter"):
        assert RIGHTS[operand].namespaced == RIGHTS[operand].cluster == ()


def test_rules_are_plain() -> None:
    assert rules((Rule("apps", ("daemonsets",), ("get",)),)) == [
        {"api_groups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"]}
    ]
