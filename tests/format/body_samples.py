"""Request bodies, written member by member, and what is to become of them."""

import json
from collections.abc import Sequence

import msgspec
from format_samples import (
    OTHER_PROJECT,
    PROJECT,
    Row,
    json_objects,
    json_strings,
    json_values,
    tag_lists,
)
from hypothesis import strategies as st

from logd.entry import LEVELS

RECEIVED_NS = 1_700_000_000_123_456_789

REQUIRED = {"projectId": f'"{PROJECT}"', "level": '"INFO"', "message": '"m"', "source": '"s"'}


def entry(*without: str, **members: str) -> bytes:
    """An entry as JSON text, of members that are JSON texts."""
    kept = {name: text for name, text in {**REQUIRED, **members}.items() if name not in without}
    return ("{" + ",".join(f'"{name}":{text}' for name, text in kept.items()) + "}").encode()


def array(*entries: bytes) -> bytes:
    return b"[" + b",".join(entries) + b"]"


# ---------------------------------------------------------------- any bodies


class Member(msgspec.Struct, frozen=True):
    """`value`: what the field is then; None where the text is no good for it."""

    name: str
    text: str
    value: object = None


class Written(msgspec.Struct, frozen=True):
    """An entry as it is written. `row`: what it holds; None where it is at fault."""

    text: str
    row: Row | None
    foreign: bool


_TIMESTAMPS = {
    "2023-11-14T22:13:20Z": 1_700_000_000_000_000_000,
    "2023-11-14T22:13:20.5Z": 1_700_000_000_500_000_000,
    "2023-11-14 23:13:20.000000001+01:00": 1_700_000_000_000_000_001,
    "1970-01-01": 0,
    "1678-01-01T00:00:00Z": -9_214_560_000_000_000_000,
    "2262-04-11T23:47:16.854775807Z": 2**63 - 1,
}
_PROJECTS = [PROJECT, PROJECT, PROJECT, PROJECT.upper(), OTHER_PROJECT]


def _as_string(name: str) -> st.SearchStrategy[Member]:
    return json_strings.map(lambda text: Member(name, text, json.loads(text)))


def _one_of(name: str, values: Sequence[str]) -> st.SearchStrategy[Member]:
    return st.sampled_from(values).map(lambda value: Member(name, f'"{value}"', value))


_GOOD = {
    "projectId": _one_of("projectId", _PROJECTS),
    "level": _one_of("level", LEVELS),
    "message": _as_string("message"),
    "source": _as_string("source").filter(lambda member: 0 < len(str(member.value)) <= 256),
    "timestamp": st.sampled_from(sorted(_TIMESTAMPS)).map(
        lambda text: Member("timestamp", f'"{text}"', _TIMESTAMPS[text])
    ),
    "tags": tag_lists.map(lambda tags: Member("tags", tags.decode(), tags.strip(b" \t\r\n"))),
    "meta": json_objects(json_values).map(
        lambda text: Member("meta", text, text.encode().strip(b" \t\r\n"))
    ),
}
_BAD_TEXTS = {
    "projectId": ['"x"', "null", "7", f'"{{{PROJECT}}}"', f'"{PROJECT[:-1]}"'],
    "level": ['"info"', '""', '"WARNING"', "null", "1", '["INFO"]'],
    "message": ["null", "1", "[]", "{}", f'"{"x" * 8193}"', f'"{"é" * 4097}"'],
    "source": ["null", '""', "0", f'"{"s" * 257}"'],
    "timestamp": ["null", "1700000000", '""', '"now"', '"2023-02-30"', '"2263-01-01"'],
    "tags": ["null", '"a"', "{}", "[1]", '[""]', "[null]", '["a",["b"]]', f'["{"t" * 129}"]',
             "[" + ",".join(['"t"'] * 65) + "]"],
    "meta": ["null", '"{}"', "[]", "1", '{"a":"' + "x" * 65_536 + '"}'],
    "lvel": ['"INFO"'],
    "projectid": [f'"{PROJECT}"'],
}  # fmt: skip

_bad_members = st.one_of([
    st.sampled_from(texts).map(lambda text, name=name: Member(name, text))  # type: ignore[misc]
    for name, texts in _BAD_TEXTS.items()
])  # fmt: skip
_good_members = st.one_of(list(_GOOD.values()))


def _key(name: str, escaped: bool) -> str:
    return f'"\\u{ord(name[0]):04x}{name[1:]}"' if escaped else f'"{name}"'


@st.composite
def _entries(draw: st.DrawFn, faulty: bool) -> Written:
    members = [draw(_GOOD[name]) for name in REQUIRED]
    members += draw(st.lists(_good_members, max_size=4))
    if faulty:
        members += draw(st.lists(_bad_members, max_size=2))
        missing = draw(st.sampled_from(["", *REQUIRED]))
        members = [member for member in members if member.name != missing]
    members = draw(st.permutations(members))
    blank = draw(st.sampled_from(["", "", " ", "\n", "\t \r\n"]))
    written = [
        f"{blank}{_key(member.name, draw(st.integers(0, 9)) == 0)}{blank}:{blank}{member.text}"
        for member in members
    ]
    row, foreign = _reading({member.name: member for member in members})  # the last one wins
    return Written("{" + ",".join(written) + blank + "}", row, foreign)


def _reading(fields: dict[str, Member]) -> tuple[Row | None, bool]:
    """(the row, whether it is good but of another project)."""
    values = {name: member.value for name, member in fields.items()}
    if None in values.values() or not set(REQUIRED) <= set(values):
        return None, False
    foreign = str(values["projectId"]).lower() != PROJECT
    ts_ns, tags, meta = values.get("timestamp", RECEIVED_NS), values.get("tags"), values.get("meta")
    assert isinstance(ts_ns, int)
    row = Row(
        ts_ns=ts_ns,
        level=LEVELS.index(values["level"]),
        message=str(values["message"]),
        source=str(values["source"]),
        tags=tags if isinstance(tags, bytes) else b"[]",
        meta=meta if isinstance(meta, bytes) else b"{}",
    )
    return row, foreign


class WrittenBody(msgspec.Struct, frozen=True):
    entries: list[Written]
    body: bytes
    ndjson: bool

    @property
    def rows(self) -> list[Row | None]:
        return [written.row for written in self.entries]

    @property
    def faulty(self) -> list[int]:
        return [index for index, row in enumerate(self.rows) if row is None]

    @property
    def foreign(self) -> list[int]:
        return [index for index, written in enumerate(self.entries) if written.foreign]

    @property
    def good(self) -> list[int]:
        return sorted(set(range(len(self.entries))) - set(self.faulty) - set(self.foreign))


@st.composite
def bodies(draw: st.DrawFn, faulty: bool = True) -> WrittenBody:
    kind = draw(st.sampled_from(["array", "object", "lines"]))
    blank = draw(st.sampled_from(["", " ", "\r\n"]))
    most = 1 if kind == "object" else 6
    some = draw(st.lists(_entries(faulty), min_size=int(kind == "object"), max_size=most))
    texts = [written.text for written in some]
    text = f"[{','.join(texts)}]" if kind == "array" else "\n".join(texts)
    return WrittenBody(some, f"{blank}{text}{blank}".encode(), kind == "lines")
