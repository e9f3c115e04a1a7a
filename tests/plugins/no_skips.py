"""A skipped test is an error: it claims what nobody has checked. Loaded by `.ci/run`."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost: after the plugins that skip
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.outcome == "skipped":
        report.outcome = "failed"
        report.__dict__.pop("wasxfail", None)  # an expected failure is not counted as one
        report.longrepr = f"{item.nodeid} was skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost: after the plugins that skip
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped: {report.longrepr}"
    return report
