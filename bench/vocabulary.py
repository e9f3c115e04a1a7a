"""What the corpus talks about: sixteen kinds of log, their templates, and the values they vary in.

A template is text with `{variable}` slots; every other brace stands for itself. A variable draws
from a pool or a range, with the skew that real values have: a few users, paths and addresses make
most of the traffic. Words that the benchmark searches for appear in lower case only, so that
case-sensitive peers find the same entries as case-insensitive ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

Level = Literal["DEBUG", "INFO", "WARN", "ERROR"]
LEVELS: tuple[Level, ...] = ("DEBUG", "INFO", "WARN", "ERROR")

Draw = Callable[[Random], str]


@dataclass(frozen=True)
class Template:
    """One printf-like line of some program. `share` is its weight within its kind."""

    level: Level
    share: int
    text: str


@dataclass(frozen=True)
class Kind:
    """A program that logs. `share` is its part of the whole traffic, in arbitrary units."""

    name: str
    share: int
    sources: tuple[str, ...]
    templates: tuple[Template, ...]


def skewed(values: list[str]) -> Draw:
    """Early values far more often than late ones: the top 1% makes 21% of all draws."""
    count = len(values)
    return lambda rng: values[int(count * rng.random() ** 3)]


def number(low: int, high: int) -> Draw:
    """A whole number from [low, high), small ones more often."""
    span = high - low
    return lambda rng: str(low + int(span * rng.random() ** 2))


def hexadecimal(digits: int) -> Draw:
    bits = digits * 4
    return lambda rng: format(rng.getrandbits(bits), f"0{digits}x")


def seconds(limit: float) -> Draw:
    return lambda rng: f"{limit * rng.random() ** 3:.3f}"


_POOLS = Random(20_240_229)


def _pool(count: int, make: Callable[[Random], str]) -> list[str]:
    return [make(_POOLS) for _ in range(count)]


_SYLLABLES = ["an", "bel", "cor", "dav", "el", "fin", "gar", "hal", "iv", "jon", "kar", "lin",
              "mar", "nor", "ol", "pet", "ros", "sam", "tor", "ul", "vik"]  # fmt: skip
_NOUNS = ["cart", "order", "invoice", "session", "profile", "refund", "stock", "price", "coupon",
          "shipment", "ledger", "quote"]  # fmt: skip

USER_IDS = _pool(20_000, lambda rng: f"u{rng.getrandbits(20):06d}")
_USERS = [
    *("root", "admin", "deploy", "postgres", "ubuntu", "git", "oracle", "test", "guest"),
    *_pool(60, lambda rng: "".join(rng.choices(_SYLLABLES, k=2))),
]
_ADDRESSES = _pool(6_000, lambda rng: ".".join(str(rng.getrandbits(8)) for _ in range(4)))
_HOSTS = [f"{role}-{zone}{n}" for role in ("web", "db", "cache", "node") for zone in "abc"
          for n in range(1, 9)]  # fmt: skip
_PATHS = [f"/api/v{v}/{noun}s" for v in (1, 2) for noun in _NOUNS] + _pool(
    400, lambda rng: f"/api/v2/{rng.choice(_NOUNS)}s/{rng.getrandbits(16)}"
)
_AGENTS = ["Mozilla/5.0", "curl/8.5.0", "okhttp/4.12.0", "kube-probe/1.31", "Prometheus/2.54.1",
           "Go-http-client/2.0", "python-requests/2.32"]  # fmt: skip
_PODS = _pool(240, lambda rng: f"{rng.choice(_NOUNS)}-{rng.getrandbits(32):08x}-"
              f"{rng.getrandbits(20):05x}")  # fmt: skip
_TABLES = [f"{noun}s" for noun in _NOUNS] + ["audit_events", "user_tokens", "outbox"]
_CLASSES = [f"com.example.{noun}.{noun.capitalize()}{layer}" for noun in _NOUNS
            for layer in ("Service", "Repository", "Controller", "Client")]  # fmt: skip
_EXCEPTIONS = ["java.lang.NullPointerException", "java.util.concurrent.TimeoutException",
               "java.sql.SQLTransientConnectionException", "java.io.IOException",
               "java.lang.IllegalStateException"]  # fmt: skip
_TOPICS = [f"{noun}.{what}" for noun in _NOUNS for what in ("created", "updated", "deleted")]
_UNITS = ["nginx", "postgresql", "chronyd", "docker", "sshd", "cron", "logrotate", "certbot"]
_DOMAINS = ["example.com", "mail.example.org", "shop.example.net", "internal.example"]
_JOBS = ["rotate-logs", "vacuum-db", "sync-stock", "send-digest", "expire-sessions", "backup-wal"]

VARIABLES: dict[str, Draw] = {
    "user": skewed(_USERS),
    "uid": skewed(USER_IDS),
    "ip": skewed(_ADDRESSES),
    "host": skewed(_HOSTS),
    "path": skewed(_PATHS),
    "agent": skewed(_AGENTS),
    "pod": skewed(_PODS),
    "table": skewed(_TABLES),
    "class": skewed(_CLASSES),
    "exception": skewed(_EXCEPTIONS),
    "topic": skewed(_TOPICS),
    "unit": skewed(_UNITS),
    "domain": skewed(_DOMAINS),
    "job": skewed(_JOBS),
    "noun": skewed(_NOUNS),
    "method": skewed(["GET", "GET", "POST", "PUT", "DELETE", "PATCH"]),
    "ok": skewed(["200", "200", "204", "201", "304"]),
    "bad": skewed(["404", "403", "401", "429", "400"]),
    "broken": skewed(["502", "500", "503", "504"]),
    "currency": skewed(["EUR", "USD", "GBP", "CHF", "JPY"]),
    "state": skewed(["ready", "pending", "draining", "degraded"]),
    "pid": number(300, 65_000),
    "port": number(1_024, 65_535),
    "bytes": number(80, 900_000),
    "count": number(1, 5_000),
    "small": number(0, 40),
    "ms": number(1, 9_000),
    "seconds": seconds(30.0),
    "amount": lambda rng: f"{400 * rng.random() ** 3 + 1:.2f}",
    "hex8": hexadecimal(8),
    "hex16": hexadecimal(16),
    "block": lambda rng: str(1_073_741_824 + rng.getrandbits(30)),
    "uuid": lambda rng: (
        f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-4{rng.getrandbits(12):03x}"
        f"-a{rng.getrandbits(12):03x}-{rng.getrandbits(48):012x}"
    ),
}

_FRAMES = (
    "\n\tat com.example.http.Dispatcher.handle(Dispatcher.java:{count})"
    "\n\tat com.example.http.Worker.run(Worker.java:{small})"
)


def _kind(name: str, share: int, sources: str, *templates: tuple[Level, int, str]) -> Kind:
    return Kind(name, share, tuple(sources.split()), tuple(Template(*t) for t in templates))


KINDS: tuple[Kind, ...] = (
    _kind(
        "nginx", 300, "nginx-edge nginx-internal nginx-static",
        ("INFO", 80, '{ip} - - "{method} {path} HTTP/1.1" {ok} {bytes} "{agent}" {seconds}'),
        ("INFO", 4, '{ip} - {user} "{method} {path} HTTP/1.1" {ok} {bytes} "-" {seconds}'),
        ("WARN", 12, '{ip} - - "{method} {path} HTTP/1.1" {bad} {bytes} "{agent}" {seconds}'),
        ("ERROR", 3, "upstream timeout while reading response header, connection {count} to "
                     "upstream http://{ip}:{port}{path}, client {ip}"),
        ("ERROR", 2, '{ip} - - "{method} {path} HTTP/1.1" {broken} {bytes} "{agent}" {seconds}'),
    ),
    _kind(
        "gateway", 180, "api-gateway checkout-api search-api",
        ("INFO", 60, '{"event":"request","route":"{path}","status":{ok},"took_ms":{ms},'
                     '"trace":"{hex16}"}'),
        ("DEBUG", 25, '{"event":"cache","hit":true,"key":"{noun}:{count}","shard":{small}}'),
        ("WARN", 8, '{"event":"slow","route":"{path}","took_ms":{ms},"trace":"{hex16}"}'),
        ("ERROR", 3, '{"event":"upstream","error":"connection refused","peer":"{ip}:{port}"}'),
    ),
    _kind(
        "kubelet", 90, "kubelet kube-proxy",
        ("INFO", 40, "SyncLoop: pod {pod} container {noun} status {state}, timeout {small}s"),
        ("INFO", 30, "Volume mounted for pod {pod}, uid {uuid}"),
        ("WARN", 10, "Readiness probe failed for pod {pod}: http status {broken}"),
        ("ERROR", 4, "Back-off restarting failed container {noun} in pod {pod}, count {small}"),
    ),
    _kind(
        "payment", 80, "payment-service payment-worker",
        ("INFO", 60, "payment {uuid} captured: {amount} {currency} for user {uid} in {ms} ms"),
        ("INFO", 20, "refund {hex16} issued for order {count}, {amount} {currency}"),
        ("WARN", 8, "card declined for user {uid}: code {small}, attempt {small}, request {hex16}"),
        ("ERROR", 3, "settlement failed: connection to acquirer {domain} lost, timeout after "
                     "{seconds} s, batch {hex8}"),
    ),
    _kind(
        "postgres", 70, "postgres-primary postgres-replica",
        ("INFO", 40, "[{pid}] connection authorized: user={user} database=shop host={ip}"),
        ("INFO", 20, "[{pid}] duration: {seconds} ms statement: SELECT * FROM {table} WHERE "
                     "id = {count}"),
        ("WARN", 6, "[{pid}] process {pid} still waiting for ShareLock on transaction {block} "
                    "after {ms} ms"),
        ("ERROR", 4, "[{pid}] deadlock detected: process {pid} waits for lock on {table}"),
    ),
    _kind(
        "storage", 60, "datanode-1 datanode-2 namenode",
        ("INFO", 60, "Received block blk_{block} of size {bytes} from /{ip}:{port}"),
        ("INFO", 30, "Served block blk_{block} to /{ip} in {ms} ms"),
        ("WARN", 5, "Slow flush of block blk_{block} to mirror {host}: took {ms} ms"),
    ),
    _kind(
        "sshd", 55, "sshd",
        ("INFO", 20, "Accepted publickey for {user} from {ip} port {port} ssh2 [{pid}]"),
        ("WARN", 16, "pam_unix(sshd:auth): authentication failure; logname= uid=0 tty=ssh "
                     "rhost={ip} user={user}"),
        ("INFO", 20, "session opened for user {user} by (uid=0) [{pid}]"),
        ("INFO", 8, "connection closed by authenticating user {user} {ip} port {port} [preauth]"),
        ("ERROR", 4, "maximum authentication attempts exceeded for {user} from {ip}, last "
                     "failure {ms} ms ago"),
    ),
    _kind(
        "java", 50, "inventory-java billing-java",
        ("INFO", 40, "{class} - processed {count} rows in {ms} ms [thread-{small}]"),
        ("DEBUG", 20, "{class} - lookup id={count} cached={small}"),
        ("ERROR", 4, "{class} - request {hex16} failed: {exception}: timeout on connection "
                     "pool-{small}" + _FRAMES),
    ),
    _kind(
        "kafka", 45, "kafka-broker kafka-consumer",
        ("INFO", 40, "[Partition {topic}-{small} broker={small}] log start offset {block}"),
        ("INFO", 20, "group {noun}-workers committed offset {block} of partition {small}, "
                     "session timeout {count} ms"),
        ("WARN", 6, "heartbeat of member {hex8} expired in group {noun}-workers, rebalancing"),
    ),
    _kind(
        "kernel", 40, "kernel",
        ("INFO", 20, "[{count}.{block}] eth0: link up, {count} Mbps, full duplex"),
        ("WARN", 20, "[{count}.{block}] TCP: possible SYN flooding on port {port}"),
        ("WARN", 10, "[{count}.{block}] audit: apparmor denied pid={pid} comm={unit}"),
        ("ERROR", 3, "[{count}.{block}] EXT4-fs error (sd{small}): inode {block} corrupted"),
    ),
    _kind(
        "redis", 40, "redis",
        ("INFO", 30, "{pid}:M * {count} changes in {small} seconds. Saving... timeout {small}s, "
                     "connection from {ip}"),
        ("DEBUG", 30, "{pid}:M . connection {block} idle for {count} s, {bytes} bytes in use"),
    ),
    _kind(
        "dns", 35, "coredns",
        ("INFO", 40, '{ip}:{port} - {pid} "A IN {host}.{domain}. udp {small}" NOERROR {seconds}s'),
        ("ERROR", 3, "plugin/errors: {host}.{domain}. A: read udp {ip}:{port}: i/o timeout"),
    ),
    _kind(
        "systemd", 30, "systemd",
        ("INFO", 30, "Started {unit}.service - cgroup {hex8}, main pid {pid}."),
        ("INFO", 20, "{unit}.service: Deactivated successfully, consumed {seconds}s CPU time."),
        ("ERROR", 3, "{unit}.service: Main process exited, code=exited, status={small}"),
    ),
    _kind(
        "mail", 25, "postfix",
        ("INFO", 30, "{hex8}: to=<{user}@{domain}>, relay={domain}[{ip}]:25, delay={seconds}, "
                     "status=sent"),
        ("WARN", 6, "{hex8}: to=<{user}@{domain}>, status=deferred (connection to {domain}[{ip}]"
                    ":25 timed out)"),
    ),
    _kind(
        "cron", 20, "cron",
        ("INFO", 40, "({user}) CMD (/usr/local/bin/{job} --shard {small}) [{pid}]"),
        ("WARN", 3, "{job} is still running after {count} s, skipping this run [{pid}]"),
    ),
    _kind(
        "accounts", 20, "auth-service",
        ("INFO", 30, "token {hex16} issued to {uid} from {ip}, expires in {count} s"),
        ("WARN", 8, "登录失败 用户={user} 地址={ip} 原因=密码错误 次数={small}"),
        ("INFO", 6, "Größe der Sitzung {hex8} für {uid}: {bytes} Bytes"),
        ("ERROR", 2, "authentication backend {host} unreachable, failure {small} of 5"),
    ),
)  # fmt: skip

REGIONS = ("eu-west-1", "eu-central-1", "us-east-1", "us-west-2", "ap-south-1", "sa-east-1")
TEAMS = ("platform", "payments", "growth", "data", "edge")
TAG_LISTS: tuple[tuple[str, ...], ...] = tuple(
    (region, team, tier) for region in REGIONS[:4] for team in TEAMS for tier in ("tier1", "tier2")
) + tuple((region,) for region in REGIONS)
