"""logd, through its command line and its HTTP interface."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from bench.corpus import timestamp
from bench.http import Address, get, head, post
from bench.oracle import Hit
from bench.peers.base import HttpPeer, LevelsReply, PeerError, Question, milliseconds
from bench.queries import Query
from bench.wire import RequestForm

_COMMAND = (sys.executable, "-m", "logd.cli.main")
_COMPILE = (sys.executable, "-c", "import logd.cli.main, logd.run")
_COMPILE_LIMIT_S = 60
_USER_ADD_LIMIT_S = 60


class _Created(msgspec.Struct):
    """What a resource that was just created is called. `key`: only of API keys."""

    id: str
    key: str = ""


class _Log(msgspec.Struct):
    ts: str
    message: str


class _Page(msgspec.Struct):
    logs: list[_Log]
    total: int


class Logd(HttpPeer):
    """Starts `logd serve` on a directory of its own, or uses the daemon at `address` with a
    personal access token (`token`) under which it makes an organisation for the benchmark."""

    name = "logd"
    durable = True
    caveats: tuple[str, ...] = (
        "an entry is acknowledged after fdatasync; every `total` is exact",
        "searches message, source and tags, without regard to case",
        "each entry on the wire carries its `projectId` (52 bytes more than for the others)",
        "remembers what matched in the chunks, so that a question is quicker the second time: the "
        "warm times are of questions asked again, those of new ones are below",
    )

    def __init__(
        self, address: Address | None = None, token: str = "", profile: str = "default"
    ) -> None:
        super().__init__(address)
        self.version = f"this tree, profile {profile}" if address is None else "remote"
        self._profile = profile
        self._token = token
        self._project = self._key = self._organisation = ""

    def command(self, data: Path) -> list[str]:
        listen = f"{self.address.host}:{self.address.port}"
        return [
            *_COMMAND,
            "serve",
            "--data",
            str(data),
            "--listen",
            listen,
            "--profile",
            self._profile,
            *self._options,
        ]

    _options: tuple[str, ...] = ()

    def environment(self, work: Path) -> dict[str, str]:
        """As where it is installed: its modules are compiled once, not at every start, also where
        this tree must not be written to."""
        others = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        compiled = work / "bytecode"
        environment = {**others, "PYTHONPYCACHEPREFIX": str(compiled)}
        if not compiled.exists():  # who compiles takes more memory ever after
            subprocess.run(
                _COMPILE,
                env=environment,
                timeout=_COMPILE_LIMIT_S,
                check=True,
                process_group=0,  # Ctrl-C is for this process, which then ends it
            )
        return environment

    def readiness(self) -> bytes:
        return get("/readyz", self.address)

    def enrol(self) -> None:
        if not self.is_remote:
            self._token = self._add_user()
        slug = f"bench-{secrets.token_hex(6)}"
        self._organisation = self._create("/v1/orgs", name="bench", slug=slug).id
        projects = f"/v1/orgs/{self._organisation}/projects"
        self._project = self._create(projects, name="bench").id
        self._key = self._create(f"/v1/projects/{self._project}/keys", name="bench").key

    def leave(self) -> None:
        """Delete the organisation from a remote daemon."""
        if self.is_remote and self._organisation:
            target = f"/v1/orgs/{self._organisation}"
            fields = f"Authorization: Bearer {self._token}"
            self._organisation = ""
            self.call(head("DELETE", target, self.address, fields) + b"\r\n")

    def stop(self) -> None:
        self.leave()
        super().stop()

    def form(self) -> RequestForm:
        start = head(
            "POST",
            "/v1/ingest",
            self.address,
            f"Authorization: Bearer {self._key}",
            "Content-Type: application/json",
        )
        member = f'{{"projectId":"{self._project}",'.encode()

        def body(lines: Sequence[bytes]) -> bytes:
            entries = [member + line[1:] for line in lines]
            return entries[0] if len(entries) == 1 else b"[" + b",".join(entries) + b"]"

        return RequestForm(start, body)

    def question(self, query: Query) -> Question:
        parameters: list[tuple[str, str]] = [("limit", str(query.page))]
        if query.level:
            parameters.append(("level", query.level))
        if query.from_ms is not None and query.to_ms is not None:
            parameters += [("from", timestamp(query.from_ms)), ("to", timestamp(query.to_ms))]
        if search := _search(query):
            parameters.append(("search", search))
        return Question(self._read(f"/logs?{urlencode(parameters)}"), None)

    def levels(self) -> LevelsReply:
        response = self.call(self._read("/logs/stats"))
        counts = msgspec.json.decode(response.body, type=dict[str, int])
        return LevelsReply(counts, response.seconds)

    def read_page(self, body: bytes) -> tuple[tuple[Hit, ...], int | None]:
        page = msgspec.json.decode(body, type=_Page)
        return tuple((milliseconds(log.ts), log.message) for log in page.logs), page.total

    def read_total(self, body: bytes) -> int:
        raise AssertionError("a page of logd tells its total")

    def _read(self, rest: str) -> bytes:
        target = f"/v1/projects/{self._project}{rest}"
        return get(target, self.address, f"Authorization: Bearer {self._key}")

    def _create(self, target: str, **members: str) -> _Created:
        fields = (f"Authorization: Bearer {self._token}", "Content-Type: application/json")
        body = json.dumps(members).encode()
        response = self.call(post(target, self.address, body, *fields))
        return msgspec.json.decode(response.body, type=_Created)

    def _add_user(self) -> str:
        command = [*_COMMAND, "user", "add", "bench@example.com", "--data", str(self.data)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_USER_ADD_LIMIT_S,
            check=False,
        )
        if done.returncode or not done.stdout.split():
            raise PeerError(f"logd user add failed: {done.stderr[-500:]}")
        return done.stdout.split()[-1]


def _search(query: Query) -> str:
    terms = list(query.words)
    if query.phrase:
        terms.append(f'"{query.phrase}"')
    if query.prefix:
        terms.append(f"{query.prefix}*")
    if query.substring:
        terms.append(query.substring)
    if query.user_id:
        terms.append(f"meta.userId:{query.user_id}")
    return " ".join(terms)


class LogdInterval(Logd):
    """The same with `durability = "interval"`."""

    name = "logd, interval"
    durable = False
    caveats: tuple[str, ...] = (
        'with `durability = "interval"`: acknowledges what is handed to the system, and syncs ten '
        "times a second",
        *Logd.caveats[1:],
    )
    _options = ("--durability", "interval")
