"""The command line: `python -m bench --help`."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench import results, suite
from bench.chart import draw, require_matplotlib
from bench.corpus import BLOCK
from bench.ending import ended_orderly, show
from bench.http import Address
from bench.peers.base import Peer
from bench.peers.logd import Logd, LogdInterval
from bench.peers.loki import Loki
from bench.peers.ripgrep import Ripgrep
from bench.peers.sqlite_fts5 import SqliteFts5
from bench.peers.victorialogs import VictoriaLogs
from bench.report import markdown, table
from bench.workloads.setting import SMOKE, full

_EPILOG = """\
examples:
  python -m bench --smoke
  python -m bench --peers logd,victorialogs --victorialogs /opt/victoria-logs --runs 3 --json r.json
  python -m bench --from-json r.json --report docs/benchmarks.md --chart docs/benchmarks.svg
  python -m bench --peers logd --only restart,memory --profile edge
  python -m bench --peers logd --only scale --scale 100k,1M,10M

Exit code: 0, or 1 when an answer was wrong, a request failed, or a durable store lost entries.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    return ended_orderly(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    try:
        found = _found(options)
    except (suite.NoRoom, results.NoResults) as error:
        raise SystemExit(str(error)) from None
    _keep(found, options.json)
    if options.report is not None:
        options.report.write_text(markdown(found))
    show(table(found))
    if options.chart is not None:
        draw(found, options.chart)
    problems = found.problems()
    for problem in problems:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _found(options: argparse.Namespace) -> results.Results:
    if options.from_json is not None:
        return results.load(options.from_json)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.dir) as work:
        return suite.run(_order(options, Path(work)))


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """What would only be noticed when all has been measured."""
    files = [path for path in (options.json, options.report, options.chart) if path is not None]
    for directory in [path.parent for path in files] + ([options.dir] if options.dir else []):
        if not directory.is_dir():
            parser.error(f"no such directory: {directory}")
    if options.chart is not None:
        require_matplotlib()
    for name in ("victorialogs", "loki"):
        binary = getattr(options, name)
        if binary and shutil.which(binary) is None:
            parser.error(f"argument --{name}: no such program: {binary}")
    if options.smoke and options.scale:
        parser.error("--smoke has no scale curve: leave out --scale")
    if "scale" in options.only and options.only != frozenset(suite.PARTS) and not options.scale:
        parser.error("--only scale needs --scale")


def _keep(found: results.Results, path: Path | None) -> None:
    if path is not None:
        results.save(found, path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure logd beside other log stores, through their public interfaces.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--peers", type=_names, help="of logd,logd-interval,victorialogs,loki,sqlite,ripgrep "
        "(default: logd and whatever other store is to be had)")  # fmt: skip
    add("--only", type=_parts, default=frozenset(suite.PARTS), metavar="PARTS",
        help=f"of {','.join(suite.PARTS)}")  # fmt: skip
    add("--smoke", action="store_true", help="a run of less than a minute, for CI")
    add("--entries", type=_count, default=1_000_000, help="entries to fill with (default 1M)")
    add("--scale", type=_counts, default=(), help="checkpoints of the scale curve: 100k,1M,10M")
    add(
        "--runs",
        type=_positive,
        default=1,
        help="repetitions, of all but the scale curve (default 1)",
    )
    add("--seed", type=int, default=1, help="of the corpus (default 1)")
    add("--dir", type=Path, help="where the temporary directory is made")
    add("--json", type=Path, help="write the results here")
    add("--report", type=Path, help="write the report, Markdown, here")
    add("--chart", type=Path, help="draw a chart here, .svg or .png (needs matplotlib)")
    add("--from-json", type=Path, help="measure nothing; report these results")
    add("--profile", choices=("default", "edge"), default="default",
        help="the profile of the logd that is started")  # fmt: skip
    add("--logd-url", type=Address.of_url, help="a running daemon; its user's token is taken "
        "from LOGD_BENCH_TOKEN")  # fmt: skip
    add("--victorialogs", metavar="BINARY", help="a binary of its server")
    add("--victorialogs-url", type=Address.of_url, help="a running server: what is stored there, "
        "in tenants of its own, stays")  # fmt: skip
    add("--loki", metavar="BINARY", help="a binary of its server")
    add("--loki-url", type=Address.of_url, help="a running server, empty; for one part of one run")
    return parser


def _order(options: argparse.Namespace, work: Path) -> suite.Order:
    available = _available(options)
    names = options.peers or tuple(available)
    missing = [name for name in names if name not in available]
    if missing:
        raise SystemExit(f"not available: {', '.join(missing)} (see --help)")
    scope = SMOKE if options.smoke else full(options.entries, options.scale)
    return suite.Order(
        peers=[available[name] for name in names],
        parts=options.only,
        scope=scope,
        runs=options.runs,
        seed=options.seed,
        work=work,
        say=lambda text: print(text, file=sys.stderr, flush=True),
        keep=lambda found: _keep(found, options.json),
    )


def _available(options: argparse.Namespace) -> dict[str, Callable[[], Peer]]:
    token = os.environ.get("LOGD_BENCH_TOKEN", "")
    peers: dict[str, Callable[[], Peer]] = {
        "logd": partial(Logd, options.logd_url, token, options.profile)
    }
    if "logd-interval" in (options.peers or ()):  # on demand: the other is what is recommended
        peers["logd-interval"] = partial(LogdInterval, profile=options.profile)
    if options.victorialogs or options.victorialogs_url:
        peers["victorialogs"] = partial(
            VictoriaLogs, options.victorialogs, options.victorialogs_url
        )
    if options.loki or options.loki_url:
        peers["loki"] = partial(Loki, options.loki, options.loki_url)
    peers["sqlite"] = SqliteFts5
    binary = Ripgrep.find()
    if binary:
        peers["ripgrep"] = partial(Ripgrep, binary)
    return peers


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"a peer is named twice: {text}")
    return names


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"not a number of 1 or more: {text}")
    return int(text)


def _parts(text: str) -> frozenset[str]:
    parts = frozenset(text.split(","))
    if unknown := parts - set(suite.PARTS):
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(sorted(unknown))}")
    return parts


def _count(text: str) -> int:
    """`100k`, `1M` or a plain number; whole blocks only."""
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    count = int(text.rstrip("kM")) * factor
    if count < BLOCK or count % BLOCK:
        raise argparse.ArgumentTypeError(f"not a multiple of {BLOCK:,}: {text}")
    return count


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({_count(part) for part in text.split(",")}))


if __name__ == "__main__":
    sys.exit(main())
