"""Archives are deterministic and say what they hold."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.errors import ToolchainError
from toolchain.images.oci import (
    FilesLayer,
    FileSpec,
    ImageConfig,
    Layer,
    TarLayer,
    canonical_json,
    pack_layout,
    with_parents,
    write_image,
    write_layer,
)

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = ImageConfig(
    architecture="amd64",
    entrypoint=("/pause",),
    env={"B": "2", "A": "1"},
    user="65534:65534",
    labels={"k": "v"},
)


def read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]  # regular files have content


def blob(files: dict[str, bytes], digest: str) -> bytes:
    content = files["blobs/sha256/" + digest.removeprefix("sha256:")]
    assert "sha256:" + hashlib.sha256(content).hexdigest() == digest
    return content


def manifest_of(files: dict[str, bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    entry = json.loads(files["index.json"])["manifests"][0]
    return entry, json.loads(blob(files, entry["digest"]))


def layer_bytes(files: dict[str, FileSpec]) -> bytes:
    target = io.BytesIO()
    write_layer(files, target)
    return target.getvalue()


@pytest.mark.parametrize("path", ["/", "", "../etc/passwd", "a/../../b"])
def test_path_outside_the_image_is_refused(path: str) -> None:
    with pytest.raises(ToolchainError, match="lies outside the image"):
        with_parents({path: FileSpec(content=b"")})


@pytest.mark.parametrize("spec", [FileSpec(), FileSpec(content=b"", link="x")])
def test_entry_must_be_one_thing(spec: FileSpec) -> None:
    with pytest.raises(ToolchainError, match="must be one of content, source, link and directory"):
        layer_bytes({"a": spec})


def test_compressed_tar_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    packed = tmp_path / "base.tar.gz"
    packed.write_bytes(gzip.compress(layer_bytes({"a": FileSpec(content=b"x")})))
    with pytest.raises(ToolchainError, match="is no plain tar"):
        write_image(tmp_path / "o/i.tar", name="n", layers=[TarLayer(packed)], config=CONFIG)
    assert list((tmp_path / "o").iterdir()) == []


def test_digests_sizes_and_name(tmp_path: Path) -> None:
    binary = tmp_path / "pause"
    binary.write_bytes(b"\x7fELF" + bytes(3_000_000))
    binary.chmod(0o750)
    base = tmp_path / "base.tar"
    base.write_bytes(layer_bytes({"etc/os-release": FileSpec(content=b"ID=x\n")}))
    layers: list[Layer] = [
        TarLayer(base),
        FilesLayer({"/pause": FileSpec(source=binary, mode=0o755)}),
    ]
    image = write_image(
        tmp_path / "i.tar", name="example.org/pause:1", layers=layers, config=CONFIG
    )

    files = read(image.archive)
    entry, manifest = manifest_of(files)
    assert entry["digest"] == image.digest
    assert entry["annotations"] == {
        "io.containerd.image.name": "example.org/pause:1",
        "org.opencontainers.image.ref.name": "example.org/pause:1",
    }
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    config = json.loads(blob(files, manifest["config"]["digest"]))
    assert config["rootfs"]["diff_ids"] == [item["digest"] for item in manifest["layers"]]
    assert config["config"] == {
        "User": "65534:65534",
        "Env": ["A=1", "B=2"],
        "Entrypoint": ["/pause"],
        "Labels": {"k": "v"},
    }
    for item in [manifest["config"], *manifest["layers"]]:
        assert len(blob(files, item["digest"])) == item["size"]
    assert blob(files, manifest["layers"][0]["digest"]) == base.read_bytes()
    assert image.size_bytes == image.archive.stat().st_size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.tar", "i.tar", "pause"]


def test_entries_keep_kind_mode_and_owner() -> None:
    specs = {
        "usr/bin/tool": FileSpec(content=b"#!", mode=0o755, uid=7, gid=8),
        "bin/tool": FileSpec(link="/usr/bin/tool"),
        "run": FileSpec(directory=True, mode=0o1777),
    }
    with tarfile.open(fileobj=io.BytesIO(layer_bytes(specs))) as tar:
        members = {m.name: m for m in tar}
    assert list(members) == ["bin", "bin/tool", "run", "usr", "usr/bin", "usr/bin/tool"]
    tool = members["usr/bin/tool"]
    assert (tool.mode, tool.uid, tool.gid, tool.mtime, tool.uname) == (0o755, 7, 8, 0, "")
    assert members["bin/tool"].linkname == "/usr/bin/tool"
    assert members["run"].mode == 0o1777
    assert members["usr"].isdir()


@given(st.permutations(["a/x", "a-b", "a", "z/y/x"]))
def test_order_of_files_does_not_matter(names: list[str]) -> None:
    specs = {n: FileSpec(directory=True) if n == "a" else FileSpec(content=b"1") for n in names}
    assert layer_bytes(specs) == layer_bytes(dict(sorted(specs.items())))


def test_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    layers = [FilesLayer({"x": FileSpec(content=b"1")})]
    one = write_image(tmp_path / "1.tar", name="n:1", layers=layers, config=CONFIG)
    two = write_image(tmp_path / "2.tar", name="n:1", layers=layers, config=CONFIG)
    assert one.archive.read_bytes() == two.archive.read_bytes()
    assert one.digest == two.digest


def layout(root: Path, manifests: int = 1) -> Path:
    store = root / "blobs/sha256"
    store.mkdir(parents=True)

    def put(content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (store / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    manifest = {"config": put(b"{}"), "layers": [put(b"layer"), put(b"layer")]}
    entry = put(canonical_json(manifest))
    put(b"left over from another image")
    (root / "index.json").write_text(json.dumps({"manifests": [entry] * manifests}))
    return root


def test_layout_is_packed_with_its_own_manifest(tmp_path: Path) -> None:
    source = layout(tmp_path / "layout")
    image = pack_layout(source, tmp_path / "i.tar", name="n:2")
    files = read(image.archive)
    entry, manifest = manifest_of(files)
    assert entry["annotations"]["io.containerd.image.name"] == "n:2"
    assert image.digest == json.loads((source / "index.json").read_text())["manifests"][0]["digest"]
    assert blob(files, manifest["layers"][0]["digest"]) == b"layer"
    assert len(files) == len(["oci-layout", "index.json", "manifest", "config", "layer"])


def test_layout_of_several_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="holds 2 images instead of one"):
        pack_layout(layout(tmp_path / "l", manifests=2), tmp_path / "i.tar", name="n")
