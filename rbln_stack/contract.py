"""What pods, agents and the plan must spell alike: label keys, paths, file names, device ids.

Read by the plan, the pod builders, the policies and every agent. Data only, standard library only;
it must never read a file, the environment or another module of the project.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# Labels that node feature discovery (NFD) and the kubelet write.
NFD_PREFIX: Final = "feature.node.kubernetes.io/"
OS_ID_LABEL: Final = NFD_PREFIX + "system-os_release.ID"
OS_VERSION_LABEL: Final = NFD_PREFIX + "system-os_release.VERSION_ID"
KERNEL_LABEL: Final = NFD_PREFIX + "kernel-version.full"
ARCH_LABEL: Final = "kubernetes.io/arch"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
GROUPING_LABELS: Final = (OS_ID_LABEL, OS_VERSION_LABEL, KERNEL_LABEL, ARCH_LABEL)

# The engine does not wait for an object that carries the first, and waits for what the second says.
SKIP_AWAIT_ANNOTATION: Final = "pulumi.com/skipAwait"
WAIT_FOR_ANNOTATION: Final = "pulumi.com/waitFor"
READY_CONDITION: Final = "Ready"

# Labels of every object of the stack.
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
STACK: Final = "rbln-stack"
# Label by which DaemonSets and Services select the pods of all operands but the driver.
APP_LABEL: Final = "app"

# Values of `<domain>/<stem>.deploy.<operand>` that keep an operand off its node.
DEPLOY_OFF: Final = "false"
DEPLOY_PAUSED: Final = "paused-for-driver-upgrade"
DEPLOY_PRE_INSTALLED: Final = "pre-installed"

# Values of `<domain>/<stem>.workload.config`.
WORKLOAD_CONTAINER: Final = "container"
WORKLOAD_VM: Final = "vm-passthrough"
WORKLOADS: Final = (WORKLOAD_CONTAINER, WORKLOAD_VM)

# The operand words inside deploy labels and object names.
DRIVER_OPERAND: Final = "driver"
VALIDATOR_OPERAND: Final = "operator-validator"
TOOLKIT_OPERAND: Final = "container-toolkit"
DEVICE_PLUGIN_OPERAND: Final = "device-plugin"
FEATURE_DISCOVERY_OPERAND: Final = "npu-feature-discovery"
DAEMON_OPERAND: Final = "rbln-daemon"
EXPORTER_OPERAND: Final = "metrics-exporter"
NODE_STATE_OPERAND: Final = "node-state"
VFIO_OPERAND: Final = "vfio-manager"
SANDBOX_PLUGIN_OPERAND: Final = "sandbox-device-plugin"
DRA_OPERAND: Final = "dra-kubelet-plugin"

# Directories and files below the vendor's run directory; a ready file is a fact about its node.
DRIVER_DIR: Final = "driver"
VALIDATIONS_DIR: Final = "validations"
DRIVER_CONTAINER_READY: Final = ".driver-ctr-ready"
DRIVER_READY: Final = "driver-ready"
TOOLKIT_READY: Final = "toolkit-ready"

# Where container runtimes look for device specs (CDI), and the stack's own spec.
CDI_DIR: Final = "/var/run/cdi"
CDI_SPEC: Final = "rbln.yaml"
CDI_KIND: Final = "rebellions.ai/npu"
CDI_DEVICE: Final = "runtime"
FEATURES_DIR: Final = "/etc/kubernetes/node-feature-discovery/features.d"
KUBELET_DIR: Final = "/var/lib/kubelet"

# Where a pod that works on its node sees the node's own file system.
HOST_MOUNT: Final = "/host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A container runtime: its word for the toolkit, its socket and its configuration."""

    name: str
    socket: str
    config_dir: str
    config_file: str


# By the prefix of a node's `containerRuntimeVersion`. The order is that of preference: where a
# fleet has several, nodes that nobody has seen yet are taken for the first that is in use.
RUNTIMES: Final[Mapping[str, Runtime]] = MappingProxyType(
    {
        "containerd": Runtime(
            name="containerd",
            socket="/run/containerd/containerd.sock",
            config_dir="/etc/containerd",
            config_file="config.toml",
        ),
        "cri-o": Runtime(
            name="crio",
            socket="/var/run/crio/crio.sock",
            config_dir="/etc/crio/crio.conf.d",
            config_file="99-rbln.conf",
        ),
        "docker": Runtime(
            name="docker",
            socket="/var/run/docker.sock",
            config_dir="/etc/docker",
            config_file="daemon.json",
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """How the devices of one vendor are recognised on a node."""

    pci_vendor: str
    pci_class: str
    module: str
    products: Mapping[str, str] = field(hash=False)


# Even ids are physical functions, odd ids the virtual functions of the same card.
RBLN_DEVICES: Final = Devices(
    pci_vendor="1eff",
    pci_class="1200",
    module="rebellions",
    products=MappingProxyType(
        {
            "1020": "RBLN-CA02",
            "1021": "RBLN-CA02",
            "1120": "RBLN-CA12",
            "1121": "RBLN-CA12",
            "1150": "RBLN-CA15",
            "1220": "RBLN-CA22",
            "1221": "RBLN-CA22",
            "1250": "RBLN-CA25",
            "1251": "RBLN-CA25",
            "2030": "RBLN-CR03",
            "2031": "RBLN-CR03",
        }
    ),
)

DEVICES: Final[Mapping[str, Devices]] = MappingProxyType({"rbln": RBLN_DEVICES})
