"""The simulated kernel's decisions: state and request in, state and answer out.

Pure: `simulator.kernel` reads requests and carries out the difference of the files of two
states. What a state looks like on a node is all in `files`.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.spec import FAULTS, NodeSpec, Npu
from simulator.tree import Device, Directory, Entry, Fifo, Link, Text

SIMULATED = "sys/module/.simulated"
CONTROL = f"{SIMULATED}/control"
REPLIES = f"{SIMULATED}/replies"
FAULT_DIR = f"{SIMULATED}/faults"
PCI_DEVICES = "sys/bus/pci/devices"
PCI_DRIVERS = "sys/bus/pci/drivers"
VFIO = "vfio-pci"
NO_OVERRIDE = "(null)"
"""What the kernel shows in `driver_override` when nothing is set."""

STATUS_READY = "0"
STATUS_FAULT = "3"
_MEMORY_BYTES = "16877879296"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What changes while a node runs."""

    faults: frozenset[str] = frozenset()
    version: str | None = None
    """Version of the loaded module; None when it is not loaded."""
    handles: int = 0
    """Open device files when last counted."""
    bound: Mapping[str, str] = field(default_factory=dict)
    """PCI address to driver; an address without a driver is absent."""


@dataclass(frozen=True, slots=True)
class Request:
    """One line from the control pipe, or one write to a driver's bind or unbind file."""

    verb: str
    args: tuple[str, ...] = ()
    reply: str | None = None
    """File name in the directory of replies; None when nobody waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the kernel must look up before it decides."""

    handles: int = 0
    overrides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of a request; `code` is an errno name or `0`."""

    code: str = "0"
    text: str = ""

    def line(self) -> str:
        """Return the answer as it goes over the pipe."""
        return f"{self.code} {self.text}".rstrip() + "\n"


class RefusedError(Exception):
    """A request that leaves the state as it is."""

    def __init__(self, code: str, text: str, state: State | None = None) -> None:
        super().__init__(text)
        self.answer = Answer(code, text)
        self.state = state


def initial_state(spec: NodeSpec) -> State:
    """Return the state of a node that has just booted."""
    state = State(faults=spec.faults)
    if spec.host_driver is None or "driver-load-fails" in spec.faults:
        return state
    return _load(spec, state, (spec.host_driver,), Facts())


def parse(line: str) -> Request | None:
    """Read `<verb> <reply pipe> [args]`; None when there is nowhere to answer."""
    words = line.split()
    minimum = 2
    if len(words) < minimum:
        return None
    folder, _, name = words[1].rpartition("/")
    # Only names in the one directory: the caller may see the node's files at another path.
    if folder != f"/{REPLIES}" or name in {"", ".", ".."}:
        return None
    return Request(words[0], tuple(words[2:]), name)


def handle(spec: NodeSpec, state: State, request: Request, facts: Facts) -> tuple[State, Answer]:
    """Decide one request."""
    verbs = {"load": _load, "unload": _unload, "bind": _bind, "unbind": _unbind, "fault": _fault}
    decide = verbs.get(request.verb)
    if decide is None:
        return state, Answer("EINVAL", f"unknown verb; known: {', '.join(sorted(verbs))}")
    try:
        return decide(spec, state, request.args, facts), Answer()
    except RefusedError as refused:
        return refused.state or state, refused.answer


def _load(spec: NodeSpec, state: State, args: tuple[str, ...], facts: Facts) -> State:
    if len(args) != 1:
        raise RefusedError("EINVAL", "load takes the version of the module")
    if state.version is not None:
        raise RefusedError("EEXIST", f"module is loaded already, version {state.version}")
    if "driver-load-fails" in state.faults:
        raise RefusedError("ENODEV", "no device answered the driver's probe")
    module = spec.hardware.module
    free = {
        npu.bdf: module
        for npu in spec.npus()
        if npu.bdf not in state.bound and facts.overrides.get(npu.bdf, module) == module
    }
    return dataclasses.replace(state, version=args[0], handles=0, bound={**state.bound, **free})


def _unload(spec: NodeSpec, state: State, args: tuple[str, ...], facts: Facts) -> State:
    if args:
        raise RefusedError("EINVAL", "unload takes no argument")
    if state.version is None:
        raise RefusedError("ENOENT", "module is not loaded")
    counted = dataclasses.replace(state, handles=facts.handles)
    if (users := _refcnt(counted)) > 0:
        raise RefusedError("EBUSY", f"module is in use by {users}", counted)
    left = {bdf: driver for bdf, driver in state.bound.items() if driver != spec.hardware.module}
    return dataclasses.replace(counted, version=None, bound=left)


def _bind(spec: NodeSpec, state: State, args: tuple[str, ...], facts: Facts) -> State:
    driver, bdf = _two(args, "bind takes a driver and a PCI address")
    if bdf not in {npu.bdf for npu in spec.npus()}:
        raise RefusedError("ENODEV", f"no simulated device at {bdf}")
    if driver not in _drivers(spec, state):
        raise RefusedError("ENODEV", f"no driver {driver}")
    if bdf in state.bound:
        raise RefusedError("EBUSY", f"{bdf} is bound to {state.bound[bdf]}")
    # A driver takes its own devices; any other only those that were given to it by name.
    if facts.overrides.get(bdf, spec.hardware.module) != driver:
        raise RefusedError("ENODEV", f"driver_override of {bdf} does not select {driver}")
    return dataclasses.replace(state, bound={**state.bound, bdf: driver})


def _unbind(_: NodeSpec, state: State, args: tuple[str, ...], __: Facts) -> State:
    # The driver is given by its own unbind file; a request on the control pipe may leave it out.
    known = (*args, state.bound.get(args[0], "a driver")) if len(args) == 1 else args
    bdf, driver = _two(known, "unbind takes a PCI address")
    if state.bound.get(bdf) != driver:
        raise RefusedError("ENODEV", f"{bdf} is not bound to {driver}")
    left = {other: owner for other, owner in state.bound.items() if other != bdf}
    return dataclasses.replace(state, bound=left)


def _fault(_: NodeSpec, state: State, args: tuple[str, ...], __: Facts) -> State:
    name, switch = _two(args, "fault takes a name and on or off")
    if name not in FAULTS or switch not in {"on", "off"}:
        raise RefusedError("EINVAL", f"faults are {', '.join(FAULTS)}, each on or off")
    faults = state.faults | {name} if switch == "on" else state.faults - {name}
    return dataclasses.replace(state, faults=faults)


def _two(args: tuple[str, ...], usage: str) -> tuple[str, str]:
    match args:
        case (first, second):
            return first, second
    raise RefusedError("EINVAL", usage)


def _refcnt(state: State) -> int:
    return max(state.handles, 1 if "module-busy" in state.faults else 0)


def _drivers(spec: NodeSpec, state: State) -> tuple[str, ...]:
    return (VFIO,) if state.version is None else (spec.hardware.module, VFIO)


def pipes(spec: NodeSpec, state: State) -> dict[str, tuple[str, ...]]:
    """Return the pipes to read, each with the verb and driver that a write to it means."""
    written = {
        f"{PCI_DRIVERS}/{driver}/{verb}": (verb, driver)
        for driver in _drivers(spec, state)
        for verb in ("bind", "unbind")
    }
    return {CONTROL: (), **written}


def files(spec: NodeSpec, state: State) -> dict[str, Entry]:
    """Return every simulated file of a node in this state, by path from the root."""
    tree: dict[str, Entry] = {path: Directory() for path in (SIMULATED, REPLIES, FAULT_DIR)}
    tree |= {f"{FAULT_DIR}/{name}": Text("on") for name in state.faults}
    tree |= {f"{PCI_DRIVERS}/{driver}": Directory() for driver in _drivers(spec, state)}
    tree |= {path: Fifo() for path in pipes(spec, state)}
    for npu in spec.npus():
        tree |= _pci_files(spec, npu)
        if driver := state.bound.get(npu.bdf):
            tree |= _bound_files(spec, state, npu, driver)
    if state.version is not None:
        tree |= _module_files(spec, state, state.version)
    return tree


def _pci_files(spec: NodeSpec, npu: Npu) -> dict[str, Entry]:
    vendor, device = f"0x{spec.hardware.vendor_id}", f"0x{spec.device_id}"
    values = {
        "vendor": vendor,
        "device": device,
        "class": f"0x{spec.hardware.pci_class}",
        "subsystem_vendor": vendor,
        "subsystem_device": device,
        "revision": "0x01",
        "numa_node": "0",
        "driver_override": NO_OVERRIDE,
        "sriov_numvfs": "0",
        "current_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
    }
    folder = f"{PCI_DEVICES}/{npu.bdf}"
    return {
        folder: Directory(),
        # Leads nowhere: only the number at its end is ever read.
        f"{folder}/iommu_group": Link(f"../../../../kernel/iommu_groups/{npu.iommu_group}"),
        **{f"{folder}/{name}": Text(value) for name, value in values.items()},
    }


def _bound_files(spec: NodeSpec, state: State, npu: Npu, driver: str) -> dict[str, Entry]:
    folder = f"{PCI_DEVICES}/{npu.bdf}"
    tree: dict[str, Entry] = {
        f"{folder}/driver": Link(f"../../drivers/{driver}"),
        f"{PCI_DRIVERS}/{driver}/{npu.bdf}": Link(f"../../devices/{npu.bdf}"),
    }
    if driver == VFIO:
        return tree | {"dev/vfio": Directory(), f"dev/vfio/{npu.iommu_group}": Device()}
    tree[f"{folder}/pools"] = Text(f"name total used\n{npu.name} {_MEMORY_BYTES} 0")
    tree[f"dev/{npu.name}"] = Device()
    return tree | _class_files(spec, state, npu)


def _class_files(spec: NodeSpec, state: State, npu: Npu) -> dict[str, Entry]:
    broken = npu.index == 0 and "device-unhealthy" in state.faults
    values = {
        "status": STATUS_FAULT if broken else STATUS_READY,
        "kernel_version": state.version or "",
        "fw_version": state.version or "",
        "product": spec.product,
        "uuid": npu.uuid,
        "sid": npu.serial,
        "memory_total": _MEMORY_BYTES,
        "memory_used": "0",
        "temperature": "31000",
        "card_power": "18100000",
        "utilization": "0.0",
    }
    folder = f"sys/class/{spec.hardware.module}/{npu.name}"
    return {
        folder: Directory(),
        f"{folder}/device": Link(f"../../../bus/pci/devices/{npu.bdf}"),
        **{f"{folder}/{name}": Text(value) for name, value in values.items()},
    }


def _module_files(spec: NodeSpec, state: State, version: str) -> dict[str, Entry]:
    module = spec.hardware.module
    return {
        f"sys/class/{module}": Directory(),
        f"dev/{spec.hardware.group_device}": Device(),
        f"sys/module/{module}": Directory(),
        f"sys/module/{module}/initstate": Text("live"),
        f"sys/module/{module}/refcnt": Text(str(_refcnt(state))),
        f"sys/module/{module}/version": Text(version),
    }
