from __future__ import annotations

import random  # noqa: TC003 - hypothesis reads the annotations

from hypothesis import given
from hypothesis import strategies as st

from rbln_stack import contract
from rbln_stack.pools import group
from tests.unit.rbln_stack.fleet import facts

PREFIX = "rbln-driver"


def test_pool_per_os_kernel_and_architecture() -> None:  # S0-02
    nodes = [
        facts("a1"),
        facts("a2"),
        facts("b1", kernel="6.8.0-49-generic"),
        facts("c1", os_version="24.04"),
        facts("d1", arch="arm64"),
    ]
    grouping = group(reversed(nodes), {}, PREFIX)
    assert [[node.name for node in pool.nodes] for pool in grouping.pools] in (
        [["a1", "a2"], ["d1"], ["b1"], ["c1"]],
        [["d1"], ["a1", "a2"], ["b1"], ["c1"]],
    )
    assert grouping.problems == ()


def test_node_without_grouping_label_is_named_and_others_are_pooled() -> None:  # S0-05, S0-06
    dropped = (contract.KERNEL_LABEL, contract.OS_ID_LABEL)
    grouping = group([facts("bad", drop=dropped), facts("good")], {}, PREFIX)
    assert [node.name for pool in grouping.pools for node in pool.nodes] == ["good"]
    (problem,) = grouping.unlabelled
    assert str(problem) == (
        "node bad: it holds an accelerator but lacks "
        "feature.node.kubernetes.io/system-os_release.ID, "
        "feature.node.kubernetes.io/kernel-version.full, so it is in no pool. Make NFD label it "
        "(its worker must run there with the sources kernel and system on)."
    )


def test_node_outside_of_selector_is_named() -> None:  # S0-70
    nodes = [
        facts("in", ("zone",), labels={"zone": "a"}),
        facts("out", ("zone",), labels={"zone": "b"}),
    ]
    grouping = group(nodes, {"zone": "a"}, PREFIX)
    assert [node.name for pool in grouping.pools for node in pool.nodes] == ["in"]
    assert [str(problem) for problem in grouping.unselected] == [
        (
            "node out: it holds an accelerator but not the label zone=a of "
            "driver.nodeSelector, so it "
            "is in no pool. Label it, or change driver.nodeSelector, if it should get a driver."
        )
    ]


def test_summary_lists_what_the_outputs_promise() -> None:  # DC-26
    (pool,) = group([facts("n2", runtime="cri-o://1.34"), facts("n1")], {}, PREFIX).pools
    assert pool.summary() == {
        "name": "ubuntu22.04-5.15.0-91-generic",
        "os": "ubuntu22.04",
        "kernel": "5.15.0-91-generic",
        "arch": "amd64",
        "nodeCount": 2,
        "nodes": ["n1", "n2"],
        "runtime": "containerd, cri-o",
    }


fleet = st.lists(
    st.builds(
        lambda kernel, arch, drop: (kernel, arch, drop),
        st.sampled_from(["5.14.0-427.el9.x86_64", "5.14.0-427.el9.aarch64", "6.8.0_a", "6.8.0.a"]),
        st.sampled_from(["amd64", "arm64"]),
        st.sampled_from([(), (contract.KERNEL_LABEL,), (contract.ARCH_LABEL,)]),
    ),
    max_size=12,
)


@given(fleet, st.randoms(use_true_random=False))
def test_each_node_is_in_one_pool_or_one_problem_in_any_order(
    specs: list[tuple[str, str, tuple[str, ...]]], shuffler: random.Random
) -> None:  # D3, DC-25
    nodes = [
        facts(f"n{number:02}", kernel=kernel, arch=arch, drop=drop)
        for number, (kernel, arch, drop) in enumerate(specs)
    ]
    grouping = group(nodes, {}, PREFIX)
    pooled = [node.name for pool in grouping.pools for node in pool.nodes]
    reported = [problem.subject.removeprefix("node ") for problem in grouping.problems]
    assert sorted(pooled + reported) == [node.name for node in nodes]
    for pool in grouping.pools:
        assert {(n.os_id, n.os_version, n.kernel, n.arch) for n in pool.nodes} == {
            (pool.os_id, pool.os_version, pool.kernel, pool.arch)
        }
    shuffler.shuffle(nodes)
    assert group(nodes, {}, PREFIX) == grouping
