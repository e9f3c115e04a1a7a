"""`logd check` and `logd reindex`: for a data directory whose daemon is stopped."""

import argparse
from typing import TYPE_CHECKING

from logd.cli.errors import FAILED, OK
from logd.cli.serve import config_of
from logd.cli.user import add_data_flags

if TYPE_CHECKING:
    from logd.cli.types import Commands
    from logd.entry import ProjectId
    from logd.store.layout import DataLayout


def add_commands(commands: "Commands") -> None:
    check = commands.add_parser(
        "check",
        help="verify a data directory",
        description="Read every byte of the logs and of the control data, verify checksums "
        "and indexes, and write nothing. The daemon must be stopped. Exit code 1 where there "
        "are problems.",
    )
    add_data_flags(check)
    check.set_defaults(run=run_check)
    reindex = commands.add_parser(
        "reindex",
        help="rebuild the indexes",
        description="Remove all indexes and build them anew from the segments. The daemon must "
        "be stopped.",
    )
    add_data_flags(reindex)
    reindex.set_defaults(run=run_reindex)


def run_check(args: argparse.Namespace) -> int:
    config = config_of(args)
    from logd.cli.owner import read
    from logd.control.check import check_control
    from logd.store.check import check_store

    with read(config.data) as (files, layout):
        control = check_control(files, layout.control)
        report = check_store(files, layout, _projects(layout))
    problems = [*(f"control: {problem}" for problem in control.problems), *report.problems]
    for problem in problems:
        print(problem)
    print(
        f"{control.records:,} control records, "
        f"{report.projects:,} projects, {report.chunks:,} chunks with {report.entries:,} entries, "
        f"{report.wal_frames:,} WAL frames with {report.wal_entries:,} entries: "
        f"{len(problems) or 'no'} problems"
    )
    return FAILED if problems else OK


def run_reindex(args: argparse.Namespace) -> int:
    config = config_of(args)
    import time

    from logd.cli.owner import owned
    from logd.run import store_limits
    from logd.store.check import reindex_store
    from logd.store.files import OsFiles

    with owned(config.data) as layout:
        limits = store_limits(config)
        chunks = reindex_store(OsFiles(), layout, _projects(layout), limits, time.time_ns)
    print(f"{chunks:,} chunks indexed")
    return OK


def _projects(layout: "DataLayout") -> "list[ProjectId]":
    from logd.store.files import OsFiles
    from logd.store.layout import parse_project_name

    names = OsFiles().list_directory(layout.projects)
    return [project for name in names if (project := parse_project_name(name)) is not None]
