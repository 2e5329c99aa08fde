"""Everything that one real node is made from: its plan and the configs of its programs. Pure."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import yaml

from toolchain.cluster.spec import DOMAIN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CONTAINERD_CONFIG = "/etc/containerd/config.toml"
BASE_SPEC = "/etc/containerd/base-spec.json"
CNI_CONFIG = "/etc/cni/net.d/10-rbln-stack.conflist"
KUBELET_CONFIG = "/etc/kubernetes/kubelet.yaml"
PKI = "/etc/kubernetes/pki"
PAUSE_IMAGE = "localhost/pause:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """What node_init needs to know; travels as a JSON file."""

    name: str
    number: int
    folder: str
    address: str
    host_address: str
    prefix: int
    pods: str
    service_network: str
    dns: str
    switch: str
    link: str
    cgroup: str
    routes: dict[str, str]
    programs: dict[str, str]
    binds: list[str]
    pause_archive: str
    pki: str
    hardware: str
    environment: dict[str, str]

    def write(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> NodePlan:
        """Read what `write` wrote."""
        return cls(**json.loads(path.read_text()))


def containerd_config(plan: NodePlan) -> str:
    """Configure containerd: CDI is on by default in this version."""
    plugins = plan.programs["ptp"].rsplit("/", 1)[0]
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE_IMAGE}"
[plugins.'io.containerd.cri.v1.runtime']
  # Lowering a process's OOM score needs a capability that many sandboxes withhold from root.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "/etc/cni/net.d"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{BASE_SPEC}"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{plan.programs["runc"]}"
"""


def base_spec(default: Mapping[str, Any]) -> dict[str, Any]:
    """Let containers see the node's /sys instead of a new one.

    The kernel is shared by all nodes, so a node's own hardware exists only in its own /sys tree.
    On a real node both are the same thing.
    """
    spec = copy.deepcopy(dict(default))
    for mount in spec["mounts"]:
        if mount["destination"] == "/sys":
            readonly = [option for option in mount["options"] if option != "rbind"]
            mount.update(source="/sys", type="bind", options=["rbind", "rslave", *readonly])
    return spec


def cni_config(plan: NodePlan) -> str:
    """A link per pod, an address of the node's own range, no masquerading."""
    return json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "ptp",
                    "ipMasq": False,
                    "mtu": 1400,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": "/run/cni-ipam",
                        "ranges": [[{"subnet": plan.pods}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "backend": "nftables", "capabilities": {"portMappings": True}},
            ],
        },
        indent=1,
    )


def kubelet_config(plan: NodePlan) -> str:
    """Configure the kubelet: callers show certificates or tokens, the API server authorises."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": plan.address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{PKI}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{PKI}/kubelet.crt",
            "tlsPrivateKeyFile": f"{PKI}/kubelet.key",
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{plan.cgroup}",
            "clusterDNS": [plan.dns],
            "clusterDomain": DOMAIN,
            "enforceNodeAllocatable": [],
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
            "failSwapOn": False,
            "healthzBindAddress": "127.0.0.1",
            "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": False,
            # Several nodes share one machine; the defaults wait for it to settle.
            "nodeStatusUpdateFrequency": "5s",
            "registryPullQPS": 0,
            "eventRecordQPS": 0,
            "serializeImagePulls": False,
            "shutdownGracePeriod": "0s",
        },
        sort_keys=False,
    )


def kubelet_command(plan: NodePlan) -> list[str]:
    """Form the kubelet's command line."""
    return [
        plan.programs["kubelet"],
        f"--config={KUBELET_CONFIG}",
        f"--kubeconfig={PKI}/kubelet.kubeconfig",
        f"--hostname-override={plan.name}",
        f"--node-ip={plan.address}",
        "--v=1",
    ]


def proxy_command(plan: NodePlan) -> list[str]:
    """Form kube-proxy's command line: nftables, as the kernels at hand have no IPVS."""
    return [
        plan.programs["kube-proxy"],
        f"--kubeconfig={PKI}/kube-proxy.kubeconfig",
        f"--hostname-override={plan.name}",
        "--proxy-mode=nftables",
        # The connection tracking limits belong to the host.
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
        f"--healthz-bind-address={plan.address}:10256",
        f"--metrics-bind-address={plan.address}:10249",
    ]
