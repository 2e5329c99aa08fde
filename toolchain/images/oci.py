"""A small, deterministic writer of OCI image archives.

Called for images that need no build: one static binary, or a base plus some files; and by the
builder, to pack what buildah made. The same input gives the same bytes: entries are sorted, times
are zero, and layers written here are not compressed, so no compressor's version matters. The
archive names its image for `ctr -n k8s.io images import`.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from toolchain.errors import ToolchainError
from toolchain.images.digests import bytes_sha256, file_sha256

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
INDEX = "application/vnd.oci.image.index.v1+json"
EPOCH_TEXT = "1970-01-01T00:00:00Z"
NAME_FOR_CONTAINERD = "io.containerd.image.name"
NAME_FOR_OCI = "org.opencontainers.image.ref.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpec:
    """One entry of a layer: exactly one of content, source, link or directory.

    `mode` None means 0644, 0755 for directories, and for a source its own permission bits.
    """

    content: bytes | None = None
    source: Path | None = None
    link: str | None = None
    directory: bool = False
    mode: int | None = None
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True, slots=True)
class TarLayer:
    """A layer that exists as an uncompressed tar; taken byte by byte."""

    tar: Path


@dataclass(frozen=True, slots=True)
class FilesLayer:
    """A layer made of single files; missing parent directories are added, owned by root."""

    files: Mapping[str, FileSpec]


Layer = TarLayer | FilesLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """How a container of the image starts."""

    architecture: str
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    working_dir: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image archive: its place, the image's name, the manifest's digest, the archive's size."""

    archive: Path
    name: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Blob:
    """A piece of an archive: bytes, or a file that is streamed."""

    digest: str
    size: int
    content: bytes | Path

    def descriptor(self, media_type: str) -> dict[str, object]:
        """How manifests point at this blob."""
        return {"mediaType": media_type, "digest": self.digest, "size": self.size}


def bytes_blob(content: bytes) -> Blob:
    """A blob of bytes in memory."""
    return Blob(bytes_sha256(content), len(content), content)


def file_blob(path: Path) -> Blob:
    """A blob that stays on disk."""
    return Blob(file_sha256(path), path.stat().st_size, path)


def write_image(
    out: Path, *, name: str, layers: Sequence[Layer], config: ImageConfig
) -> BuiltImage:
    """Write an image archive; it appears under its name only when it is complete."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        blobs = [
            _layer_blob(layer, Path(scratch) / f"layer-{number}.tar")
            for number, layer in enumerate(layers)
        ]
        config_blob = bytes_blob(canonical_json(config_document(config, [b.digest for b in blobs])))
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config_blob.descriptor(CONFIG),
            "layers": [blob.descriptor(LAYER) for blob in blobs],
        }
        manifest_blob = bytes_blob(canonical_json(manifest))
        return write_archive(out, name, manifest_blob, [config_blob, *blobs])


def write_archive(out: Path, name: str, manifest: Blob, blobs: Iterable[Blob]) -> BuiltImage:
    """Write a manifest and its blobs as one archive that holds one named image."""
    entry = manifest.descriptor(MANIFEST)
    entry["annotations"] = {NAME_FOR_CONTAINERD: name, NAME_FOR_OCI: name}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
    documents = {
        "oci-layout": bytes_blob(canonical_json({"imageLayoutVersion": "1.0.0"})),
        "index.json": bytes_blob(canonical_json(index)),
    }
    stored = {f"blobs/sha256/{b.digest.removeprefix('sha256:')}": b for b in [manifest, *blobs]}
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        made = Path(scratch) / "image.tar"
        with tarfile.open(made, "w", format=tarfile.PAX_FORMAT) as archive:
            for folder in ("blobs", "blobs/sha256"):
                archive.addfile(_entry(folder, kind=tarfile.DIRTYPE, mode=0o755))
            for path, blob in sorted({**documents, **stored}.items()):
                with _opened(blob.content) as stream:
                    archive.addfile(_entry(path, size=blob.size), stream)
        made.replace(out)
    return BuiltImage(out, name, manifest.digest, out.stat().st_size)


def config_document(config: ImageConfig, diff_ids: Sequence[str]) -> dict[str, object]:
    """The image's configuration as the OCI specification writes it; empty fields are left out."""
    run = {
        "User": config.user,
        "Env": [f"{key}={value}" for key, value in sorted(config.env.items())],
        "Entrypoint": list(config.entrypoint),
        "Cmd": list(config.cmd),
        "WorkingDir": config.working_dir,
        "Labels": dict(config.labels),
    }
    return {
        "created": EPOCH_TEXT,
        "architecture": config.architecture,
        "os": "linux",
        "config": {key: value for key, value in run.items() if value},
        "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
        "history": [{"created": EPOCH_TEXT, "created_by": "rbln-stack"} for _ in diff_ids],
    }


def canonical_json(document: object) -> bytes:
    """One spelling per document, so that equal documents have equal digests."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def with_parents(files: Mapping[str, FileSpec]) -> dict[str, FileSpec]:
    """Normalised paths, each after its parent directories."""
    given: dict[str, FileSpec] = {}
    for raw, spec in files.items():
        path = raw.strip("/")
        if not path or ".." in PurePosixPath(path).parts:
            raise ToolchainError(
                f"layer path {raw!r} lies outside the image", "give a path below the image's root"
            )
        given[str(PurePosixPath(path))] = spec
    parents = {
        str(parent): FileSpec(directory=True)
        for path in given
        for parent in PurePosixPath(path).parents
        if str(parent) != "."
    }
    return dict(sorted({**parents, **given}.items(), key=lambda item: item[0].split("/")))


def write_layer(files: Mapping[str, FileSpec], target: IO[bytes]) -> None:
    """Write a layer's tar: sorted, without times and user names."""
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, spec in with_parents(files).items():
            _add(archive, path, spec)


def _add(archive: tarfile.TarFile, path: str, spec: FileSpec) -> None:
    kinds = [spec.content is not None, spec.source is not None, spec.link is not None]
    if sum([*kinds, spec.directory]) != 1:
        raise ToolchainError(
            f"layer entry {path} must be one of content, source, link and directory",
            "give exactly one of these fields",
        )
    if spec.directory:
        mode = 0o755 if spec.mode is None else spec.mode
        archive.addfile(_entry(path, kind=tarfile.DIRTYPE, mode=mode, owner=(spec.uid, spec.gid)))
    elif spec.link is not None:
        entry = _entry(path, kind=tarfile.SYMTYPE, mode=0o777, owner=(spec.uid, spec.gid))
        entry.linkname = spec.link
        archive.addfile(entry)
    elif spec.source is not None:
        with spec.source.open("rb") as stream:
            facts = os.fstat(stream.fileno())
            mode = stat.S_IMODE(facts.st_mode) if spec.mode is None else spec.mode
            archive.addfile(
                _entry(path, size=facts.st_size, mode=mode, owner=(spec.uid, spec.gid)), stream
            )
    else:
        content = spec.content or b""
        mode = 0o644 if spec.mode is None else spec.mode
        archive.addfile(
            _entry(path, size=len(content), mode=mode, owner=(spec.uid, spec.gid)),
            io.BytesIO(content),
        )


def _entry(
    path: str,
    *,
    size: int = 0,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o644,
    owner: tuple[int, int] = (0, 0),
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type, entry.size, entry.mode, entry.mtime = kind, size, mode, 0
    entry.uid, entry.gid = owner
    entry.uname = entry.gname = ""
    return entry


def _layer_blob(layer: Layer, place: Path) -> Blob:
    if isinstance(layer, TarLayer):
        if not tarfile.is_tarfile(layer.tar) or _compressed(layer.tar):
            raise ToolchainError(f"{layer.tar} is no plain tar", "give an uncompressed tar file")
        return file_blob(layer.tar)
    with place.open("wb") as target:
        write_layer(layer.files, target)
    return file_blob(place)


def _compressed(path: Path) -> bool:
    with path.open("rb") as source:
        head = source.read(6)
    return head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"))


@contextmanager
def _opened(content: bytes | Path) -> Iterator[IO[bytes]]:
    if isinstance(content, Path):
        with content.open("rb") as stream:
            yield stream
    else:
        yield io.BytesIO(content)


def pack_layout(layout: Path, out: Path, *, name: str) -> BuiltImage:
    """Pack an OCI layout directory with one image as a named, deterministic archive."""
    index = json.loads((layout / "index.json").read_text())
    manifests = index.get("manifests", [])
    if len(manifests) != 1:
        raise ToolchainError(
            f"{layout} holds {len(manifests)} images instead of one", "build again from scratch"
        )
    manifest = file_blob(_blob_path(layout, manifests[0]["digest"]))
    document = json.loads(Path(_blob_path(layout, manifest.digest)).read_text())
    wanted = [document["config"], *document["layers"]]
    blobs = {item["digest"]: file_blob(_blob_path(layout, item["digest"])) for item in wanted}
    return write_archive(out, name, manifest, blobs.values())


def _blob_path(layout: Path, digest: str) -> Path:
    kind, _, value = digest.partition(":")
    return layout / "blobs" / kind / value
