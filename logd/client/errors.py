"""What can go wrong between this program and the daemon."""

from logd.client.wire import Fault, Problem


class ClientError(Exception):
    """Base of all errors that the client raises on purpose. One line, without a secret."""


class Unreachable(ClientError):
    """No answer, after all retries. `detail` is the last attempt's failure."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__(f"no answer from {url}: {detail}")
        self.detail = detail


class Refused(ClientError):
    """The daemon answered, and said no; for 429 and 503 also after all retries.

    `code` is the machine-readable reason (`""` where the answer is not the daemon's), `faults`
    the fields that are to blame.
    """

    def __init__(self, status: int, problem: Problem) -> None:
        self.status = status
        self.code = problem.code
        self.detail = problem.detail or problem.title or "no reason given"
        self.request_id = problem.request_id
        self.faults: tuple[Fault, ...] = problem.errors
        reason = "; ".join(map(str, self.faults)) or self.detail
        super().__init__(f"refused ({status}): {reason}")


class BadAnswer(ClientError):
    """An answer that is not what the interface promises: no logd, or a proxy in between."""
