"""The control plane: which servers run with which flags, and the process that keeps them running.

`python -m toolchain.cluster.servers <cluster folder>` is the one long-lived process of a cluster:
servers and nodes are its children and die with it.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.cluster.spec import DOMAIN, Layout, Record
from toolchain.cluster.supervise import Program, Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping

ETCD_PORT = 2379
ETCD_PEER_PORT = 2380
CONTROLLERS_PORT = 10257
SCHEDULER_PORT = 10259
KWOK_PORT = 10247
LEASE_S = 40  # a restarted kwok waits for the old leases to end, so they must be short
PLAN = "servers.json"
READY_TIMEOUT_S = 60.0
# Started first; all others are clients of the API server.
SERVERS = ("etcd", "kube-apiserver")
# Every server by its own name: for forming command lines without knowing where programs are.
NAMES = {
    name: name
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
}


def ports(record: Record) -> dict[str, int]:
    """Name every port that the servers will listen on, at the cluster's own address."""
    named = {
        "API server": record.spec.api_port,
        "etcd": ETCD_PORT,
        "etcd peer": ETCD_PEER_PORT,
        "controller manager": CONTROLLERS_PORT,
        "scheduler": SCHEDULER_PORT,
    }
    return named | ({"kwok": KWOK_PORT} if record.spec.kwok else {})


def api_url(record: Record) -> str:
    """The API server's address for everyone outside a pod."""
    return f"https://{record.addresses.host}:{record.spec.api_port}"


def commands(record: Record, layout: Layout, programs: Mapping[str, str]) -> dict[str, list[str]]:
    """Form the command line of every server, in the order of their start."""
    found = {
        "etcd": _etcd(record, layout),
        "kube-apiserver": _api_server(record, layout),
        "kube-controller-manager": _controllers(record, layout),
        "kube-scheduler": _scheduler(record, layout),
    }
    if record.spec.kwok:
        found["kwok"] = _kwok(record, layout)
    return {name: [programs[name], *flags] for name, flags in found.items()}


def _etcd(record: Record, layout: Layout) -> list[str]:
    host = record.addresses.host
    client, peer = f"https://{host}:{ETCD_PORT}", f"https://{host}:{ETCD_PEER_PORT}"
    pki = layout.pki
    return [
        "--name=etcd",
        f"--data-dir={layout.root / 'etcd'}",
        # Nobody needs this data after a power cut, and fsync is what etcd waits for most.
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=etcd={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki / 'etcd-ca.crt'}",
        f"--cert-file={pki / 'etcd.crt'}",
        f"--key-file={pki / 'etcd.key'}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={pki / 'etcd-ca.crt'}",
        f"--peer-cert-file={pki / 'etcd.crt'}",
        f"--peer-key-file={pki / 'etcd.key'}",
        "--log-level=warn",
    ]


def _api_server(record: Record, layout: Layout) -> list[str]:
    addresses, pki = record.addresses, layout.pki
    # A loopback address cannot be the endpoint of the kubernetes Service; nobody uses it then.
    advertised = addresses.host if record.real_nodes else str(addresses.node_network[1])
    return [
        f"--bind-address={addresses.host}",
        f"--advertise-address={advertised}",
        f"--secure-port={record.spec.api_port}",
        f"--etcd-servers=https://{addresses.host}:{ETCD_PORT}",
        f"--etcd-cafile={pki / 'etcd-ca.crt'}",
        f"--etcd-certfile={pki / 'etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'etcd-client.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        # Node names resolve nowhere; without this, logs and exec fail.
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--service-cluster-ip-range={addresses.service_network}",
        # The host is outside the service network, so webhooks are dialled at their pods.
        "--enable-aggregator-routing=true",
        f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy.key'}",
        f"--requestheader-client-ca-file={pki / 'ca.crt'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def _controllers(record: Record, layout: Layout) -> list[str]:
    pki, kubeconfig = layout.pki, layout.pki / "kube-controller-manager.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={record.addresses.host}",
        f"--secure-port={CONTROLLERS_PORT}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        *_RATES,
    ]


def _scheduler(record: Record, layout: Layout) -> list[str]:
    kubeconfig = layout.pki / "kube-scheduler.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={record.addresses.host}",
        f"--secure-port={SCHEDULER_PORT}",
        "--leader-elect=false",
        *_RATES,
    ]


# The servers stand on one machine: waiting for a rate limit would only make large fleets slow.
_RATES = ["--kube-api-qps=500", "--kube-api-burst=1000"]


def _kwok(record: Record, layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.pki / 'kwok.kubeconfig'}",
        f"--config={Path(__file__).with_name('kwok_stages.yaml')}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--cidr=10.90.0.0/16",
        f"--node-ip={record.addresses.host}",
        f"--node-lease-duration-seconds={LEASE_S}",
        f"--server-address={record.addresses.host}:{KWOK_PORT}",
    ]


def main() -> None:
    """Run the servers and nodes of the cluster whose folder is the argument, until killed."""
    layout = Layout(Path(sys.argv[1]))
    record = Record.read(layout.record)
    plan = json.loads((layout.root / PLAN).read_text())
    if record is None:
        sys.exit(f"{layout.record} is not readable: run `rbln-stack cluster down` and up again")
    supervisor = Supervisor()
    found = commands(record, layout, plan["programs"])
    clients = {name: found.pop(name) for name in list(found) if name not in SERVERS}
    for started in (found, plan["nodes"], clients):
        if started is clients:
            wait_for_api(record, layout)
        for name, argv in started.items():
            supervisor.add(Program(name=name, log=layout.logs / f"{name}.log", argv=argv))
    supervisor.run()


def wait_for_api(record: Record, layout: Layout) -> None:
    """Wait until the API server is ready; a server's start offers no event, so it is asked.

    Its clients end when they come too early, and would be started again only after a pause.
    """
    context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
    pair = layout.pki / "kubelet-client"
    context.load_cert_chain(f"{pair}.crt", f"{pair}.key")
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        connection = http.client.HTTPSConnection(
            record.addresses.host, record.spec.api_port, context=context, timeout=2
        )
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)


def node_command(plan_file: Path) -> list[str]:
    """Form the command that becomes a node: namespaces first, then node_init as their PID 1."""
    unshare = shutil.which("unshare") or "unshare"
    flags = ["--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child"]
    return [unshare, *flags, sys.executable, "-m", "toolchain.cluster.node_init", str(plan_file)]


if __name__ == "__main__":
    os.umask(0o022)
    main()
