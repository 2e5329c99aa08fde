"""Image references: the notations that the chart uses, each in its place, and their one meaning.

The chart writes an image in three ways (`image.{registry,repository,tag,pullPolicy}`,
`{registry,image,version,imagePullPolicy}`, `{registry,image,tag,pullPolicy}`). Every one of them
gives an `ImageRef`; nothing after config sees the notation (X-15).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol, Self

from pydantic import Discriminator, Field, Tag, model_validator

from rbln_stack.config.base import Section

if TYPE_CHECKING:
    from rbln_stack.profiles import ImageDefaults

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Registry = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9.:/]*[A-Za-z0-9])?)?$")]
Repository = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9._/]*[a-z0-9])?)?$")]
ImageTag = Annotated[
    str,
    Field(
        pattern=(
            r"^([A-Za-z0-9_][-A-Za-z0-9_.]{0,127}(@sha256:[0-9a-f]{64})?|sha256:[0-9a-f]{64})?$"
        )
    ),
]

# Marks of alternatives; the library puts them into the place of a problem, `load` out again.
TEXT_TAG: Final = "@text"
MAP_TAG: Final = "@map"
UNION_TAGS: Final = frozenset({TEXT_TAG, MAP_TAG})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRef:
    """One image, whatever notation it was written in."""

    registry: str
    repository: str
    tag: str
    digest: str = ""
    pull_policy: PullPolicy = "IfNotPresent"

    @property
    def reference(self) -> str:
        """The text a container's `image` takes."""
        name = f"{self.registry.rstrip('/')}/{self.repository.lstrip('/')}"
        tag = f":{self.tag}" if self.tag else ""
        return f"{name}{tag}@{self.digest}" if self.digest else f"{name}{tag}"

    @property
    def floating(self) -> bool:
        """Whether the same reference may mean another image tomorrow (S0-109)."""
        return not self.digest and self.tag in {"", "latest"}


class Imaged(Protocol):
    """A section that stands for an image."""

    @property
    def image_ref(self) -> ImageRef:
        """The image in the one form the rest of the program knows."""
        ...


def make_ref(registry: str, repository: str, tag: str, pull_policy: PullPolicy) -> ImageRef:
    """A reference out of the parts users write; the tag may hold a digest."""
    name, _, digest = tag.rpartition("@") if "@" in tag else ("", "", tag)
    if not digest.startswith("sha256:"):
        name, digest = tag, ""
    return ImageRef(
        registry=registry, repository=repository, tag=name, digest=digest, pull_policy=pull_policy
    )


class Image(Section):
    """An image in the chart's notation `registry`, `repository`, `tag`, `pullPolicy`."""

    registry: Registry = ""
    """Registry host; empty means the default."""
    repository: Repository = ""
    """Path below the registry; empty means the default."""
    tag: ImageTag = ""
    """Version, digest `sha256:…` or both; always text, so `3.0` must be quoted."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls the image."""

    @property
    def image_ref(self) -> ImageRef:
        """The image in the one form the rest of the program knows."""
        return make_ref(self.registry, self.repository, self.tag, self.pull_policy)

    def filled(self, default: ImageDefaults) -> Self:
        """With the vendor's parts where config names none."""
        return self.model_copy(
            update={
                "registry": self.registry or default.registry,
                "repository": self.repository or default.repository,
                "tag": self.tag or default.tag,
            }
        )


class VersionedImage(Section):
    """An image in the notation of the custom resources: `registry`, `image`, `version`."""

    registry: Registry = ""
    """Registry host; empty means the default."""
    image: Repository = ""
    """Path below the registry; empty means the default."""
    version: ImageTag = ""
    """Version, digest `sha256:…` or both; always text, so `3.0` must be quoted."""
    image_pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls the image."""

    @property
    def image_ref(self) -> ImageRef:
        """The image in the one form the rest of the program knows."""
        return make_ref(self.registry, self.image, self.version, self.image_pull_policy)

    def filled(self, default: ImageDefaults) -> Self:
        """With the vendor's parts where config names none."""
        return self.model_copy(
            update={
                "registry": self.registry or default.registry,
                "image": self.image or default.repository,
                "version": self.version or default.tag,
            }
        )


def _notation(value: object) -> str:
    return MAP_TAG if isinstance(value, dict | Image) else TEXT_TAG


class EitherImage(Section):
    """An image written flat (`registry`, `image`, `tag`, `pullPolicy`) or as a map `image`."""

    registry: Registry = ""
    """Registry host; empty means the default."""
    image: Annotated[
        Annotated[Repository, Tag(TEXT_TAG)] | Annotated[Image, Tag(MAP_TAG)],
        Discriminator(_notation),
    ] = ""
    """Path below the registry, or a map that says all of it; empty means the default."""
    tag: ImageTag = ""
    """Version, digest `sha256:…` or both; always text, so `3.0` must be quoted."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls the image."""

    @model_validator(mode="after")
    def _one_notation(self) -> Self:
        beside = {"registry": "registry", "tag": "tag", "pull_policy": "pullPolicy"}
        clashing = [key for name, key in beside.items() if name in self.model_fields_set]
        if isinstance(self.image, Image) and clashing:
            msg = f"image is a map and says all of the image, so {', '.join(clashing)} must go"
            raise ValueError(msg)
        return self

    @property
    def _parts(self) -> Image:
        if isinstance(self.image, Image):
            return self.image
        return Image.model_construct(
            registry=self.registry,
            repository=self.image,
            tag=self.tag,
            pull_policy=self.pull_policy,
        )

    @property
    def image_ref(self) -> ImageRef:
        """The image in the one form the rest of the program knows."""
        return self._parts.image_ref

    def filled(self, default: ImageDefaults) -> Self:
        """With the vendor's parts where config names none, in the flat notation."""
        parts = self._parts.filled(default)
        return self.model_copy(
            update={
                "registry": parts.registry,
                "image": parts.repository,
                "tag": parts.tag,
                "pull_policy": parts.pull_policy,
            }
        )
