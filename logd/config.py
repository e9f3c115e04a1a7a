"""Every option of the daemon and of the commands, and the one place that reads them.

An option has one name: `max_body_bytes` is that key in the TOML file, `LOGD_MAX_BODY_BYTES` in
the environment and `--max-body-bytes` on the command line. A flag wins over the environment, the
environment over the file, the file over the profile's default. A key or variable that is not an
option is an error, never ignored: a typo must not run the daemon with a default.
"""

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from logd.errors import LogdError

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

DEFAULT_PORT: Final = 8514
PREFIX: Final = "LOGD_"


class BadConfig(LogdError):
    """An option that cannot be used. `where` is the flag, the variable, or the file and key."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(f"{where}: {detail}")
        self.where = where
        self.detail = detail


class Address(msgspec.Struct, frozen=True):
    """Where to listen. Port 0: any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # some other name: it may resolve to anything
            return False


def _says(text: str) -> Meta:
    return Meta(description=text)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What the daemon runs with. The descriptions are the help of `logd serve`."""

    data: Annotated[Path, _says("directory of all data; created if there is none")]
    profile: Annotated[
        Literal["default", "edge"], _says("set of defaults; edge: for little memory and disk")
    ] = "default"
    listen: Annotated[
        tuple[Address, ...], _says("HOST:PORT to serve on; may be given several times")
    ] = (Address("127.0.0.1", DEFAULT_PORT),)
    insecure_http: Annotated[bool, _says("allow plain HTTP on addresses that are not loopback")] = (
        False
    )
    tls_cert: Annotated[Path | None, _says("PEM file: the certificate and its chain")] = None
    tls_key: Annotated[Path | None, _says("PEM file: the certificate's private key")] = None
    max_body_bytes: Annotated[
        int, Meta(ge=64 * KIB, le=GIB), _says("largest request body, also after decompression")
    ] = 32 * MIB
    max_connections: Annotated[
        int, Meta(ge=1, le=65_536), _says("open connections; more wait in the listen queue")
    ] = 1024
    body_memory_bytes: Annotated[
        int,
        Meta(ge=64 * KIB),
        _says("memory for all request bodies and responses in flight together"),
    ] = 128 * MIB
    request_timeout_seconds: Annotated[
        float, Meta(gt=0, le=3600), _says("time for a request's head to arrive")
    ] = 30.0
    stall_timeout_seconds: Annotated[
        float, Meta(gt=0, le=3600), _says("longest pause in a body sent or a response read")
    ] = 30.0
    shutdown_grace_seconds: Annotated[
        float, Meta(ge=0, le=3600), _says("time for open requests to end after SIGTERM")
    ] = 5.0
    durability: Annotated[
        Literal["commit", "interval"],
        _says("commit: acknowledge what is synced; interval: sync every sync_interval_ms"),
    ] = "commit"
    sync_interval_ms: Annotated[
        int, Meta(ge=1, le=60_000), _says("with durability = interval: most that a crash loses")
    ] = 100
    tail_bytes: Annotated[
        int, Meta(ge=MIB), _says("memory for entries that are not in chunks yet, all projects")
    ] = 256 * MIB
    chunk_entries: Annotated[
        int, Meta(ge=16, le=65_536), _says("a tail of this many entries becomes a chunk")
    ] = 65_536
    chunk_bytes: Annotated[
        int, Meta(ge=64 * KIB, le=GIB), _says("a tail of this size becomes a chunk")
    ] = 16 * MIB
    segment_bytes: Annotated[int, Meta(ge=64 * KIB), _says("a segment of this size is closed")] = (
        256 * MIB
    )
    segment_seconds: Annotated[int, Meta(ge=60), _says("a segment of this age is closed")] = 86_400
    cache_bytes: Annotated[int, Meta(ge=0), _says("memory for decompressed blocks")] = 64 * MIB
    query_threads: Annotated[int, Meta(ge=1, le=64), _says("queries that run at once")] = 4
    scan_processes: Annotated[
        int,
        Meta(ge=0, le=64),
        _says("processes that scan chunks for searches, at most one a core; 0: the daemon itself"),
    ] = 2
    build_in: Annotated[
        Literal["process", "thread"],
        _says("where chunks are built; process: faster, takes 75 MB more while it runs"),
    ] = "process"
    min_free_disk_bytes: Annotated[
        int, Meta(ge=0), _says("with less free disk, ingest answers 503")
    ] = 256 * MIB
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], _says("of the daemon's own log, on stderr")
    ] = "info"


EDGE: Final[Mapping[str, object]] = {
    "max_body_bytes": MIB,
    "max_connections": 128,
    "body_memory_bytes": 2 * MIB,
    "tail_bytes": 2 * MIB,
    "chunk_entries": 4096,
    "chunk_bytes": 512 * KIB,
    "segment_bytes": 64 * MIB,
    "cache_bytes": 512 * KIB,
    "query_threads": 1,
    "scan_processes": 0,
    "build_in": "thread",
    "min_free_disk_bytes": 64 * MIB,
}
"""What the profile "edge" sets where nothing else is said, so that the process stays below 64 MiB.
A freeze takes several times the bytes of a chunk, a request several times those of its body."""

_TYPES: Final = get_type_hints(Config, include_extras=True)
OPTIONS: Final = tuple(_TYPES)
COMMAND_VARIABLES: Final = ("LOGD_CONFIG", "LOGD_URL", "LOGD_KEY", "LOGD_KEY_FILE", "LOGD_PROJECT")
"""Variables that are not options of the daemon: the config file, and the commands' connection."""


class _Given(msgspec.Struct, frozen=True):
    """A value and where it was said. `text`: it came as a string, whatever its type."""

    where: str
    value: object
    text: bool


def load(
    flags: Mapping[str, object], environ: Mapping[str, str], file: Path | None = None
) -> Config:
    """The options in force. Raises BadConfig.

    `flags`: by option name, None where not given; `environ`: all variables of the process;
    `file`: the TOML file, else the one that LOGD_CONFIG names, else none.
    """
    if file is None and environ.get("LOGD_CONFIG"):
        file = Path(environ["LOGD_CONFIG"])
    given = {**_from_file(file), **_from_environ(environ), **_from_flags(flags)}
    values = {name: _parsed(name, said) for name, said in given.items()}
    if "data" not in values:
        raise BadConfig("data", "no directory given: use --data, LOGD_DATA or the config file")
    if values.get("profile") == "edge":
        values = {**EDGE, **values}
    config = Config(**values)  # type: ignore[arg-type]  # _parsed gave each its type
    _check(config, lambda name: given[name].where if name in given else name)
    return config


def describe(name: str) -> str:
    """What the option is, for help texts."""
    metas = (m for m in _TYPES[name].__metadata__ if isinstance(m, Meta) and m.description)
    return next(str(meta.description) for meta in metas)


def choices(name: str) -> tuple[str, ...]:
    """The values of an option that has few, else nothing."""
    of = _TYPES[name].__origin__
    return get_args(of) if get_origin(of) is Literal else ()


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def parse_address(text: str) -> Address:
    """HOST:PORT, an IPv6 host in brackets. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    bare_ipv6 = ":" in host and not text.startswith("[")
    if not colon or not host or bare_ipv6:
        raise ValueError(f"{text!r} is not HOST:PORT (an IPv6 host in brackets)")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ValueError(f"{text!r}: the port is a number from 0 to 65535")
    return Address(host, int(port))


def _from_file(file: Path | None) -> dict[str, _Given]:
    if file is None:
        return {}
    import tomllib  # with a file only

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BadConfig(str(file), str(reason)) from error
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(str(file), f"not TOML: {error}") from error
    for key in content:
        if key not in _TYPES:
            raise BadConfig(str(file), f"unknown key {key!r}{_hint(key, OPTIONS)}")
    return {key: _Given(f"{file}: {key}", value, False) for key, value in content.items()}


def _from_environ(environ: Mapping[str, str]) -> dict[str, _Given]:
    given = {}
    variables = {PREFIX + name.upper(): name for name in OPTIONS}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable in COMMAND_VARIABLES:
            continue
        if variable not in variables:
            raise BadConfig(variable, f"unknown variable{_hint(variable, variables)}")
        given[variables[variable]] = _Given(variable, text, True)
    return given


def _from_flags(flags: Mapping[str, object]) -> dict[str, _Given]:
    return {
        name: _Given(flag(name), value, True) for name, value in flags.items() if value is not None
    }


def _hint(wrong: str, right: Iterable[str]) -> str:
    import difflib  # after a typo only

    close = difflib.get_close_matches(wrong, list(right), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _parsed(name: str, given: _Given) -> object:
    try:
        if name in _PARSERS:
            return _PARSERS[name](given.value)
        value: object = msgspec.convert(given.value, _TYPES[name], strict=not given.text)
    except (msgspec.ValidationError, ValueError) as error:
        raise BadConfig(given.where, _fault(name, given, error)) from error
    return value


def _fault(name: str, given: _Given, error: Exception) -> str:
    """What is wrong, for one who knows the option's values but not our types."""
    if words := choices(name):
        return f"{given.value!r} is not one of {', '.join(words)}"
    if isinstance(error, msgspec.ValidationError) and given.text:
        return f"{given.value!r}: {error}"
    return str(error)


def _path(value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError("a path is expected")
    try:
        return Path(value).expanduser()
    except RuntimeError:  # it begins with `~name`
        raise ValueError(f"{str(value)!r}: there is no such user, or no home") from None


def _addresses(value: object) -> tuple[Address, ...]:
    """Of one text, with commas between addresses, or of a list of them."""
    texts = value.split(",") if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("HOST:PORT or a list of them is expected")
    if not texts:
        raise ValueError("at least one address is needed")
    return tuple(parse_address(text.strip()) for text in texts)


_PARSERS: Final[Mapping[str, Callable[[object], object]]] = {
    "data": _path,
    "tls_cert": _path,
    "tls_key": _path,
    "listen": _addresses,
}


def _check(config: Config, where: Callable[[str], str]) -> None:
    """The rules that join several options."""
    if (config.tls_cert is None) != (config.tls_key is None):
        raise BadConfig(where("tls_cert"), "tls_cert and tls_key go together")
    for address in config.listen:
        refuse_plain_http(config, address, where("listen"))
    if config.body_memory_bytes < config.max_body_bytes:
        raise BadConfig(where("body_memory_bytes"), "must be at least max_body_bytes")
    if config.segment_bytes < config.chunk_bytes:
        raise BadConfig(where("segment_bytes"), "must be at least chunk_bytes")
    if config.tail_bytes < config.chunk_bytes:
        raise BadConfig(where("tail_bytes"), "must be at least chunk_bytes")


def refuse_plain_http(config: Config, address: Address, where: str) -> None:
    """Raises BadConfig where `address` would serve other machines in the clear, and nobody said
    that this is meant. `where`: who named the address."""
    if not (address.is_loopback or config.tls_cert or config.insecure_http):
        raise BadConfig(
            where,
            f"{address} is reachable from other machines and plain HTTP shows keys and logs "
            "on the way: set tls_cert and tls_key, or insecure_http = true behind a proxy",
        )


class Connection(msgspec.Struct, frozen=True):
    """Which daemon the commands talk to, and as whom. `project_id`: None where not said."""

    url: str
    key: str
    project_id: str | None

    def __repr__(self) -> str:  # the key must not reach a log line
        return f"Connection(url={self.url!r}, project_id={self.project_id!r})"


def load_connection(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Connection:
    """From `url`, `key`, `key_file` and `project`, each a flag or a variable. Raises BadConfig."""
    default_url = f"http://127.0.0.1:{DEFAULT_PORT}"
    url = flags.get("url") or environ.get("LOGD_URL") or default_url
    if not url.startswith(("http://", "https://")):
        raise BadConfig("--url" if flags.get("url") else "LOGD_URL", f"{url!r} is not http(s)://")
    project = flags.get("project") or environ.get("LOGD_PROJECT") or None
    return Connection(url.rstrip("/"), _key(flags, environ), project)


def _key(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> str:
    for said in (flags, {name: environ.get(PREFIX + name.upper()) for name in ("key", "key_file")}):
        if key := said.get("key"):
            return key
        if file := said.get("key_file"):
            return _read_key(Path(file))
    raise BadConfig("key", "no API key given: use --key-file, LOGD_KEY or LOGD_KEY_FILE")


def _read_key(file: Path) -> str:
    try:
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BadConfig(str(file), str(reason)) from error
    if not key or any(character.isspace() for character in key):
        raise BadConfig(str(file), "must hold one key and nothing else")
    return key
