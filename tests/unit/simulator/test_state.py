"""The simulated kernel's decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.fleet import load_fleet
from simulator.spec import FAULTS
from simulator.state import (
    PCI_DEVICES,
    REPLIES,
    Answer,
    Facts,
    Request,
    State,
    files,
    handle,
    initial_state,
    parse,
    pipes,
)
from simulator.tree import Device, Directory, Link, Put, Remove, Text, difference

SPEC = load_fleet().node(0, "node-0")
FIRST, SECOND = (npu.bdf for npu in SPEC.npus())
LOADED = handle(SPEC, State(), Request("load", ("3.0.0",)), Facts())[0]


def refused(state: State, verb: str, *args: str, facts: Facts | None = None) -> str:
    after, answer = handle(SPEC, state, Request(verb, args), facts or Facts())
    assert answer.code != "0"
    assert after.version == state.version
    assert after.bound == state.bound
    return answer.code


def accepted(state: State, verb: str, *args: str, facts: Facts | None = None) -> State:
    after, answer = handle(SPEC, state, Request(verb, args), facts or Facts())
    assert answer == Answer()
    return after


@pytest.mark.parametrize(
    ("state", "request_line", "code"),
    [
        (State(), "unload", "ENOENT"),
        (State(), "load", "EINVAL"),
        (State(faults=frozenset({"driver-load-fails"})), "load 3.0.0", "ENODEV"),
        (LOADED, "load 3.0.0", "EEXIST"),
        (LOADED, "unload now", "EINVAL"),
        (LOADED, f"bind vfio-pci {FIRST}", "EBUSY"),
        (LOADED, "bind vfio-pci 0000:00:00.0", "ENODEV"),
        (State(), f"bind rebellions {FIRST}", "ENODEV"),
        (State(), f"bind vfio-pci {FIRST}", "ENODEV"),
        (State(), "bind", "EINVAL"),
        (State(), f"unbind {FIRST}", "ENODEV"),
        (LOADED, f"unbind {FIRST} vfio-pci", "ENODEV"),
        (LOADED, "unbind", "EINVAL"),
        (LOADED, "fault boom on", "EINVAL"),
        (LOADED, "fault smi-hangs maybe", "EINVAL"),
        (LOADED, "reboot", "EINVAL"),
    ],
)
def test_request_is_refused(state: State, request_line: str, code: str) -> None:
    assert refused(state, *request_line.split()) == code


def test_module_in_use_stays_and_shows_its_users() -> None:
    after, answer = handle(SPEC, LOADED, Request("unload"), Facts(handles=2))
    assert answer.code == "EBUSY"
    assert files(SPEC, after)["sys/module/rebellions/refcnt"] == Text("2")
    assert accepted(after, "unload").version is None


def test_busy_fault_keeps_the_module() -> None:
    busy = accepted(LOADED, "fault", "module-busy", "on")
    assert refused(busy, "unload") == "EBUSY"
    assert files(SPEC, busy)["sys/module/rebellions/refcnt"] == Text("1")
    assert accepted(accepted(busy, "fault", "module-busy", "off"), "unload").version is None


def test_unhealthy_fault_changes_one_file_of_device_zero() -> None:
    broken = accepted(LOADED, "fault", "device-unhealthy", "on")
    actions = difference(files(SPEC, LOADED), files(SPEC, broken))
    assert actions == (
        Put("sys/class/rebellions/rbln0/status", Text("3")),
        Put("sys/module/.simulated/faults/device-unhealthy", Text("on")),
    )


def test_loaded_driver_shows_what_operands_look_for() -> None:
    tree = files(SPEC, LOADED)
    assert tree[f"{PCI_DEVICES}/{FIRST}/vendor"] == Text("0x1eff")
    assert tree[f"{PCI_DEVICES}/{FIRST}/class"] == Text("0x120000")
    assert tree[f"{PCI_DEVICES}/{SECOND}/driver"] == Link("../../drivers/rebellions")
    assert tree["sys/class/rebellions/rbln1/kernel_version"] == Text("3.0.0")
    pools = tree[f"{PCI_DEVICES}/{SECOND}/pools"]
    assert isinstance(pools, Text)
    assert pools.value.splitlines()[1].startswith("rbln1")
    assert {path for path, entry in tree.items() if entry == Device()} == {
        "dev/rbln0",
        "dev/rbln1",
        "dev/rsd0",
    }


def test_device_goes_to_vfio_and_back() -> None:
    chosen = Facts(overrides={FIRST: "vfio-pci"})
    state = accepted(accepted(LOADED, "unbind", FIRST), "bind", "vfio-pci", FIRST, facts=chosen)
    tree = files(SPEC, state)
    assert tree["dev/vfio/10"] == Device()
    assert "dev/rbln0" not in tree
    assert accepted(state, "unload").bound == {FIRST: "vfio-pci"}
    assert refused(accepted(state, "unbind", FIRST), "bind", "rebellions", FIRST, facts=chosen)
    assert accepted(accepted(state, "unbind", FIRST), "bind", "rebellions", FIRST) == LOADED


def test_loading_leaves_a_device_kept_for_another_driver() -> None:
    facts = Facts(overrides={FIRST: "vfio-pci"})
    assert accepted(State(), "load", "3.0.0", facts=facts).bound == {SECOND: "rebellions"}


def test_driver_of_the_host_is_loaded_at_boot() -> None:
    spec = type(SPEC).from_json(
        SPEC.to_json().replace('"host_driver": null', '"host_driver": "2.1"')
    )
    assert initial_state(spec).version == "2.1"


@pytest.mark.parametrize(
    "line", ["", "load", "load /tmp/x", f"load /{REPLIES}/..", f"load /{REPLIES}/", "load x y"]
)
def test_request_without_a_reply_pipe_is_dropped(line: str) -> None:
    assert parse(line) is None


def test_request_line_is_read() -> None:
    assert parse(f"fault /{REPLIES}/ab smi-hangs on\n") == Request(
        "fault", ("smi-hangs", "on"), "ab"
    )


bdfs = st.sampled_from([FIRST, SECOND, "0000:00:01.0"])
requests = st.one_of(
    st.builds(lambda v: Request("load", (v,)), st.sampled_from(["3.0.0", "3.1.0"])),
    st.just(Request("unload")),
    st.builds(
        lambda d, b: Request("bind", (d, b)), st.sampled_from(["rebellions", "vfio-pci"]), bdfs
    ),
    st.builds(lambda b: Request("unbind", (b,)), bdfs),
    st.builds(
        lambda n, s: Request("fault", (n, s)),
        st.sampled_from(FAULTS),
        st.sampled_from(["on", "off"]),
    ),
    st.builds(
        lambda v, a: Request(v, tuple(a)),
        st.text(max_size=5),
        st.lists(st.text(max_size=4), max_size=3),
    ),
)
facts = st.builds(
    lambda handles, overrides: Facts(handles=handles, overrides=overrides),
    st.integers(0, 2),
    st.dictionaries(bdfs, st.sampled_from(["rebellions", "vfio-pci"])),
)


@given(st.lists(st.tuples(requests, facts), max_size=25))
def test_files_follow_any_sequence_of_requests(steps: list[tuple[Request, Facts]]) -> None:
    state = initial_state(SPEC)
    disk = dict(files(SPEC, state))
    for request, known in steps:
        before = state
        state, answer = handle(SPEC, state, request, known)
        for action in difference(files(SPEC, before), files(SPEC, state)):
            if isinstance(action, Remove):
                del disk[action.path]
            else:
                assert disk.get(action.path.rpartition("/")[0], Directory()) == Directory()
                disk[action.path] = action.entry
        assert disk == files(SPEC, state)
        loaded = state.version is not None
        assert loaded == ("sys/module/rebellions" in disk) == ("dev/rsd0" in disk)
        for npu in SPEC.npus():
            ours = state.bound.get(npu.bdf) == "rebellions"
            assert ours == (f"dev/{npu.name}" in disk)
            assert ours == (f"sys/class/rebellions/{npu.name}" in disk)
            assert loaded or not ours
        if answer.code != "0":
            assert (state.bound, state.faults) == (before.bound, before.faults)
        assert set(pipes(SPEC, state)) <= set(disk)
