from __future__ import annotations

import random  # noqa: TC003 - hypothesis reads the annotations
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbln_stack import naming

PREFIX = "rbln-driver"
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

label_values = st.from_regex(LABEL_VALUE, fullmatch=True).filter(lambda text: len(text) <= 63)
kernels = (
    st.sampled_from(
        [
            "5.15.0-91-generic",
            "5.14.0-427.13.1.el9_4.x86_64",
            "5.14.0-427.el9.aarch64_64k",
            "6.1.0_rc1",
        ]
    )
    | label_values
)
keys = st.tuples(
    st.sampled_from(["ubuntu", "rhel", "rocky"]) | label_values,
    st.sampled_from(["22.04", "9.4"]) | label_values,
    kernels,
    st.sampled_from(["amd64", "arm64"]),
)


@pytest.mark.parametrize(
    ("kernel", "part"),
    [
        ("5.15.0-91-generic", "5.15.0-91-generic"),
        ("5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.13.1.el9.4"),
        ("5.14.0-427.13.1.el9_4.aarch64_64k", "5.14.0-427.13.1.el9.4"),
        ("5.14.0-427.13.1.el9_4.aarch64+64k", "5.14.0-427.13.1.el9.4"),
        ("6.8.0-49-generic-64k", "6.8.0-49-generic-64k"),
        ("6.1.0+RC1", "6.1.0-rc1"),
        ("6.1.0_-_x", "6.1.0.x"),
    ],
)
def test_kernel_part(kernel: str, part: str) -> None:  # S0-14
    assert naming.kernel_part(kernel) == part


def test_plain_names_carry_no_hash() -> None:  # S0-14, X-08
    key = ("ubuntu", "22.04", "5.15.0-91-generic", "amd64")
    assert naming.pool_names([key], PREFIX) == {key: "ubuntu22.04-5.15.0-91-generic"}


def test_two_pools_of_one_name_get_a_hash_each() -> None:
    amd = ("rhel", "9.4", "5.14.0-427.el9.x86_64", "amd64")
    arm = ("rhel", "9.4", "5.14.0-427.el9.aarch64", "arm64")
    names = naming.pool_names([amd, arm], PREFIX)
    assert names[amd] != names[arm]
    for name in names.values():
        assert re.fullmatch(r"rhel9\.4-5\.14\.0-427\.el9-[0-9a-f]{8}", name)


def test_long_names_are_cut_and_hashed() -> None:
    key = ("ubuntu", "22.04", "5.15.0-1234-a-very-long-flavour-of-a-kernel-name", "amd64")
    name = naming.pool_names([key], PREFIX)[key]
    assert len(naming.object_name(PREFIX, name)) == 63
    assert name.startswith("ubuntu22.04-5.15.0-1234-a-very-long-flavou")


@given(st.lists(keys, unique=True, max_size=8), st.randoms(use_true_random=False))
def test_names_are_distinct_valid_and_free_of_order(
    some: list[naming.PoolKey], shuffler: random.Random
) -> None:  # S0-14, DC-25
    names = naming.pool_names(some, PREFIX)
    assert len(set(names.values())) == len(some)
    for name in names.values():
        full = naming.object_name(PREFIX, name)
        assert len(full) <= 63
        assert SUBDOMAIN.fullmatch(full)
        assert LABEL_VALUE.fullmatch(name)
    shuffled = list(some)
    shuffler.shuffle(shuffled)
    assert naming.pool_names(shuffled, PREFIX) == names


@given(st.text(max_size=80))
def test_any_kernel_gives_a_valid_part(kernel: str) -> None:
    part = naming.kernel_part(kernel)
    assert not part or SUBDOMAIN.fullmatch(part)
    assert naming.kernel_part(part) == part or "x86" in kernel.lower() or "aarch" in kernel.lower()


def test_image_references() -> None:  # S0-16
    assert naming.image_reference("localhost/", "/a/b", "1") == "localhost/a/b:1"
    digest = "sha256:" + "0" * 64
    assert naming.image_reference("docker.io", "a", digest) == f"docker.io/a@{digest}"
    tag = naming.precompiled_tag("3.0.0", "5.15.0-100-generic", "ubuntu", "22.04")
    assert tag == "3.0.0-5.15.0-100-generic-ubuntu22.04"
