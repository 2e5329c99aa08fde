"""Writes the smallest shared object that the dynamic loader accepts.

Stands in for the vendor's user-mode libraries, so that no compiler is needed to build the
stand-in driver image. The result depends on the arguments alone.
"""

import struct
from dataclasses import dataclass

MACHINES = {"x86_64": 62, "aarch64": 183}
SYMBOL = "rbln_version"

_EHDR, _PHDR, _SHDR = 64, 56, 64
_PAGE = 0x10000
"""The largest page size of both machines."""
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_READ_WRITE = 6
_SHT_PROGBITS, _SHT_STRTAB, _SHT_HASH, _SHT_DYNAMIC, _SHT_DYNSYM = 1, 3, 5, 6, 11
_DT_NULL, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = (
    0, 4, 5, 6, 10, 11, 14,
)  # fmt: skip
_ALLOC, _WRITE_ALLOC = 2, 3
_SYMBOL_SIZE, _DYNAMIC_SIZE = 24, 16
_GLOBAL_OBJECT = 0x11


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    name: str
    kind: int
    data: bytes
    flags: int = _ALLOC
    link: int = 0
    info: int = 0
    align: int = 8
    entry_size: int = 0


def shared_object(soname: str, text: str, arch: str = "x86_64") -> bytes:
    """Return an ELF64 library with this SONAME that exports `text` as `SYMBOL`."""
    if arch not in MACHINES:
        raise ValueError(f"unknown architecture {arch!r}; known: {', '.join(sorted(MACHINES))}")
    strings = b"\0" + soname.encode() + b"\0" + SYMBOL.encode() + b"\0"
    content = text.encode() + b"\0"
    # Sizes are known before addresses, so a first round with zeros gives the layout.
    sections = _sections(strings, content, soname, dict.fromkeys(_NAMES, 0))
    offsets = _offsets(sections)
    sections = _sections(strings, content, soname, offsets)
    return _image(sections, offsets, MACHINES[arch])


_NAMES = (".hash", ".dynsym", ".dynstr", ".rodata", ".dynamic", ".shstrtab")


def _sections(
    strings: bytes, content: bytes, soname: str, at: dict[str, int]
) -> tuple[_Section, ...]:
    symbol = struct.pack(
        "<IBBHQQ",
        len(soname) + 2,
        _GLOBAL_OBJECT,
        0,
        _NAMES.index(".rodata") + 1,
        at[".rodata"],
        len(content),
    )
    # One bucket that holds the one symbol: a valid table for any hash value.
    table = struct.pack("<5I", 1, 2, 1, 0, 0)
    tags = (
        (_DT_SONAME, 1),
        (_DT_HASH, at[".hash"]),
        (_DT_STRTAB, at[".dynstr"]),
        (_DT_SYMTAB, at[".dynsym"]),
        (_DT_STRSZ, len(strings)),
        (_DT_SYMENT, _SYMBOL_SIZE),
        (_DT_NULL, 0),
    )
    dynamic = b"".join(struct.pack("<QQ", tag, value) for tag, value in tags)
    names = b"\0" + b"".join(name.encode() + b"\0" for name in _NAMES)
    symbols = bytes(_SYMBOL_SIZE) + symbol
    return (
        _Section(name=".hash", kind=_SHT_HASH, data=table, link=2, entry_size=4),
        _Section(
            name=".dynsym", kind=_SHT_DYNSYM, data=symbols, link=3, info=1, entry_size=_SYMBOL_SIZE
        ),
        _Section(name=".dynstr", kind=_SHT_STRTAB, data=strings, align=1),
        _Section(name=".rodata", kind=_SHT_PROGBITS, data=content),
        _Section(
            name=".dynamic",
            kind=_SHT_DYNAMIC,
            data=dynamic,
            flags=_WRITE_ALLOC,
            link=3,
            entry_size=_DYNAMIC_SIZE,
        ),
        _Section(name=".shstrtab", kind=_SHT_STRTAB, data=names, flags=0, align=1),
    )


def _offsets(sections: tuple[_Section, ...]) -> dict[str, int]:
    at, offsets = _EHDR + 3 * _PHDR, {}
    for section in sections:
        at += -at % section.align
        offsets[section.name] = at
        at += len(section.data)
    return offsets


def _image(sections: tuple[_Section, ...], offsets: dict[str, int], machine: int) -> bytes:
    dynamic = next(section for section in sections if section.name == ".dynamic")
    start, size = offsets[".dynamic"], len(dynamic.data)
    loaded = start + size
    segments = (
        # Writable as a whole, because the loader relocates the dynamic section in place.
        (_PT_LOAD, 0, loaded, _PAGE),
        (_PT_DYNAMIC, start, size, 8),
        # Without this one the loader would ask for an executable stack.
        (_PT_GNU_STACK, 0, 0, 16),
    )
    end = offsets[".shstrtab"] + len(sections[-1].data)
    headers_at = end + -end % 8
    image = bytearray(headers_at)
    image[:_EHDR] = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        *(3, machine, 1, 0, _EHDR, headers_at, 0, _EHDR, _PHDR, len(segments)),
        *(_SHDR, len(sections) + 1, len(sections)),
    )
    for index, (kind, offset, length, align) in enumerate(segments):
        place = _EHDR + index * _PHDR
        image[place : place + _PHDR] = struct.pack(
            "<IIQQQQQQ", kind, _READ_WRITE, offset, offset, offset, length, length, align
        )
    for section in sections:
        at = offsets[section.name]
        image[at : at + len(section.data)] = section.data
    return bytes(image) + bytes(_SHDR) + b"".join(_header(s, offsets) for s in sections)


def _header(section: _Section, offsets: dict[str, int]) -> bytes:
    name_at = 1 + sum(len(name) + 1 for name in _NAMES[: _NAMES.index(section.name)])
    at = offsets[section.name]
    return struct.pack(
        "<IIQQQQIIQQ",
        name_at,
        section.kind,
        section.flags,
        at if section.flags else 0,
        at,
        len(section.data),
        section.link,
        section.info,
        section.align,
        section.entry_size,
    )
