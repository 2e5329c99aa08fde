"""Which paths of its node each container may see, where, and how: an allow-list as data (X-43).

The pod builders take volumes and mounts from here and from nowhere else, so whatever is not listed
cannot be mounted; policies compare deployed pods with the same list. `/` is read-only everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rbln_stack import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rbln_stack.profiles import VendorProfile

Access = Literal["ro", "rw"]
Kind = Literal["Directory", "DirectoryOrCreate", "Socket"]
Propagation = Literal["None", "HostToContainer", "Bidirectional"]

DRIVER_MANAGER: Final = "k8s-driver-manager"
DRIVER_VALIDATION: Final = "driver-validation"
TOOLKIT_VALIDATION: Final = "toolkit-validation"
RUNTIME_CONFIG_MOUNT: Final = "/runtime/config-dir"
RUNTIME_CONFIG_VOLUME: Final = "runtime-config-dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPath:
    """One path of the node in one container."""

    volume: str
    path: str
    mount: str
    access: Access = "rw"
    kind: Kind = "DirectoryOrCreate"
    propagation: Propagation = "None"


Containers = dict[str, tuple[HostPath, ...]]

# Package subscriptions of the host, which drivers built on the node need; by OS id.
_SUBSCRIPTIONS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "rhel": (
        ("/etc/pki/entitlement", "/etc/pki/entitlement"),
        ("/etc/rhsm", "/etc/rhsm"),
        ("/etc/yum.repos.d", "/etc/yum.repos.d"),
    ),
    "rhcos": (
        ("/etc/yum.repos.d", "/etc/yum.repos.d"),
        ("/etc/pki/entitlement", "/var/run/secrets/etc-pki-entitlement"),
        ("/etc/rhsm", "/var/run/secrets/rhsm"),
    ),
}


def driver(profile: VendorProfile, os_id: str) -> Containers:
    """The driver pod of a pool with this OS (S0-07, DC-32)."""
    subscriptions = tuple(
        HostPath(
            volume=f"subscription-config-{number}",
            path=path,
            mount=mount,
            access="ro",
            kind="Directory",
        )
        for number, (path, mount) in enumerate(_SUBSCRIPTIONS.get(os_id, ()))
    )
    return {
        DRIVER_MANAGER: (
            _host_root(),
            HostPath(volume="host-dev", path="/dev", mount="/dev", access="ro", kind="Directory"),
        ),
        profile.driver_container: (
            # The container mounts its own root there, and the host must see that mount.
            HostPath(
                volume="host-driver",
                path=profile.driver_dir,
                mount=f"{contract.HOST_MOUNT}{profile.driver_dir}",
                propagation="Bidirectional",
            ),
            _validations(profile),
            *subscriptions,
        ),
    }


def validator(profile: VendorProfile, name: str) -> Containers:
    """The validator pod (S0-32)."""
    shared = _validations(profile, propagation="Bidirectional")
    return {
        DRIVER_VALIDATION: driver_validation(profile),
        TOOLKIT_VALIDATION: (shared, _cdi(access="ro")),
        name: (shared,),
    }


def driver_validation(profile: VendorProfile) -> tuple[HostPath, ...]:
    """What it takes to judge a driver, of the host or of a container."""
    return (
        _host_root(),
        HostPath(
            volume="host-usr-bin",
            path="/usr/bin",
            mount="/host-usr-bin",
            access="ro",
            kind="Directory",
        ),
        _driver_files(profile),
        _validations(profile, propagation="Bidirectional"),
    )


def toolkit(profile: VendorProfile, name: str, runtime: contract.Runtime, mode: str) -> Containers:
    """The toolkit pod: the socket of one runtime, and its config only in the mode that edits it."""
    socket = HostPath(
        volume=f"{runtime.name}-sock", path=runtime.socket, mount=runtime.socket, kind="Socket"
    )
    config = HostPath(
        volume=RUNTIME_CONFIG_VOLUME, path=runtime.config_dir, mount=RUNTIME_CONFIG_MOUNT
    )
    return {
        DRIVER_VALIDATION: driver_validation(profile),
        name: (
            _validations(profile),
            _driver_files(profile, access="rw"),
            _host_root(),
            _cdi(),
            HostPath(
                volume="run-rbln",
                path=profile.run_dir,
                mount=profile.run_dir,
                propagation="HostToContainer",
            ),
            HostPath(
                volume="host-usr-local-bin",
                path="/usr/local/bin",
                mount=f"{contract.HOST_MOUNT}/usr/local/bin",
            ),
            socket,
            *((config,) if mode == "runtime-config" else ()),
        ),
    }


def device_plugin(profile: VendorProfile, name: str, host_bin: str = "/usr/bin") -> Containers:
    """The device plugin: both ways to register, the devices, and the driver's tools."""
    kubelet = contract.KUBELET_DIR
    return {
        TOOLKIT_VALIDATION: (_waited(profile),),
        name: (
            # Plural: the directory in which kubelet.sock is; newer plugins register through it.
            _same("devicesock", f"{kubelet}/device-plugins"),
            _same("plugins-registry", f"{kubelet}/plugins_registry"),
            _same("log", "/var/log"),
            _same("device-info", "/var/run/k8s.cni.cncf.io/devinfo/dp"),
            _same("host-sys", "/sys", access="ro", kind="Directory"),
            _same("host-dev", "/dev", kind="Directory"),
            HostPath(
                volume="host-usr-bin",
                path=host_bin,
                mount="/host/usr/bin",
                access="ro",
                kind="Directory",
            ),
            HostPath(
                volume="host-driver-usr-bin",
                path=f"{profile.driver_dir}/usr/bin",
                mount="/host/driver/usr/bin",
                access="ro",
            ),
            _cdi(),
            # A driver that is mounted anew is seen through this one, not through the one above.
            HostPath(
                volume="run-rbln",
                path=profile.run_dir,
                mount=profile.run_dir,
                access="ro",
                propagation="HostToContainer",
            ),
        ),
    }


def feature_discovery(profile: VendorProfile, name: str) -> Containers:
    """Feature discovery: NFD's directory of local features, and sysfs."""
    return {
        TOOLKIT_VALIDATION: (_waited(profile),),
        name: (
            _same("features-dir", contract.FEATURES_DIR),
            _same("host-sys", "/sys", access="ro", kind="Directory"),
        ),
    }


def daemon(profile: VendorProfile, name: str) -> Containers:
    """The telemetry daemon."""
    return {
        TOOLKIT_VALIDATION: (_waited(profile),),
        name: (
            _same("var-run", "/var/run", kind="Directory"),
            _same("host-sys", "/sys", access="ro", kind="Directory"),
            _same("debugfs", "/sys/kernel/debug", kind="Directory"),
            _same("rebellions-log", "/var/log/rebellions"),
        ),
    }


def exporter(profile: VendorProfile, name: str) -> Containers:
    """The metrics exporter: which pod holds which device, and sysfs."""
    return {
        TOOLKIT_VALIDATION: (_waited(profile),),
        name: (
            _same(
                "pod-resources",
                f"{contract.KUBELET_DIR}/pod-resources",
                access="ro",
                kind="Directory",
            ),
            _same("host-sys", "/sys", access="ro", kind="Directory"),
        ),
    }


def _same(
    volume: str, path: str, *, access: Access = "rw", kind: Kind = "DirectoryOrCreate"
) -> HostPath:
    return HostPath(volume=volume, path=path, mount=path, access=access, kind=kind)


def _host_root() -> HostPath:
    """The node's root; what is mounted there later must show up."""
    return HostPath(
        volume="host-root",
        path="/",
        mount=contract.HOST_MOUNT,
        access="ro",
        kind="Directory",
        propagation="HostToContainer",
    )


def _validations(profile: VendorProfile, propagation: Propagation = "None") -> HostPath:
    path = profile.validations_dir
    return HostPath(volume="run-rbln-validations", path=path, mount=path, propagation=propagation)


def _waited(profile: VendorProfile) -> HostPath:
    """The ready files for a container that only looks at them."""
    path = profile.validations_dir
    return HostPath(
        volume="run-rbln-validations",
        path=path,
        mount=path,
        access="ro",
        propagation="HostToContainer",
    )


def _driver_files(profile: VendorProfile, access: Access = "ro") -> HostPath:
    path = profile.driver_dir
    return HostPath(
        volume="driver-install-dir",
        path=path,
        mount=path,
        access=access,
        propagation="HostToContainer",
    )


def _cdi(access: Access = "rw") -> HostPath:
    return HostPath(volume="cdi-root", path=contract.CDI_DIR, mount=contract.CDI_DIR, access=access)
