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
GROUPING_LABELS: Final = (OS_ID_LABEL, OS_VERSION_LABEL, KERNEL_LABEL, ARCH_LABEL)

# The engine does not wait for an object that carries this.
SKIP_AWAIT_ANNOTATION: Final = "pulumi.com/skipAwait"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"

# Values of `<domain>/<stem>.deploy.<operand>` that keep an operand off its node.
DEPLOY_OFF: Final = "false"
DEPLOY_PAUSED: Final = "paused-for-driver-upgrade"
DEPLOY_PRE_INSTALLED: Final = "pre-installed"

# Values of `<domain>/<stem>.workload.config`.
WORKLOAD_CONTAINER: Final = "container"
WORKLOAD_VM: Final = "vm-passthrough"
WORKLOADS: Final = (WORKLOAD_CONTAINER, WORKLOAD_VM)

# The operand word inside deploy labels.
DRIVER_OPERAND: Final = "driver"

# Directories and files below the vendor's run directory.
DRIVER_DIR: Final = "driver"
VALIDATIONS_DIR: Final = "validations"
DRIVER_CONTAINER_READY: Final = ".driver-ctr-ready"

# Where a pod that works on its node sees the node's own file system.
HOST_MOUNT: Final = "/host"


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
