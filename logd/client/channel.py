"""Requests to one daemon: authorised, retried while the fault may pass, answers checked."""

import random
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import httpx
import msgspec

from logd.client.errors import BadAnswer, ClientError, Refused, Unreachable
from logd.client.retry import PASSING, delay_seconds
from logd.client.wire import Problem

CONNECT_TIMEOUT_SECONDS: Final = 10.0

T = TypeVar("T")
Sleep = Callable[[float], bool | None]
"""Waits for so many seconds; True: woken, because there is no time for another attempt."""


class Channel:
    """One daemon and one key. Not for several threads at once.

    A request that fails in passing is repeated until `retry_seconds` have gone by, so it has to
    be one that may be repeated.
    """

    def __init__(
        self, url: str, key: str, *, timeout_seconds: float, retry_seconds: float, sleep: Sleep
    ) -> None:
        """Raises ClientError where the address, the key or a proxy of the environment cannot be
        used."""
        self._url = _checked(url)
        self._retry_seconds = retry_seconds
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {_checked_key(key)}"}
        try:
            self._http = httpx.Client(
                headers=headers,
                timeout=httpx.Timeout(timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
                verify=_trust(self._url),
            )
        except (ImportError, ValueError) as error:  # SOCKS needs a package of its own
            raise ClientError(f"the proxy that the environment names: {error}") from error

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, params: Mapping[str, str], answer: type[T]) -> T:
        request = self._http.build_request("GET", self._url + path, params=dict(params))
        return _decoded(self._answered(request), answer)

    def post(self, path: str, body: bytes, headers: Mapping[str, str], answer: type[T]) -> T:
        request = self._http.build_request(
            "POST", self._url + path, content=body, headers=dict(headers)
        )
        return _decoded(self._answered(request), answer)

    def _answered(self, request: httpx.Request) -> httpx.Response:
        """A successful answer. Raises Unreachable, Refused."""
        give_up_at = time.monotonic() + self._retry_seconds
        attempt = 0
        while True:
            outcome = self._attempt(request)
            if isinstance(outcome, httpx.Response) and outcome.is_success:
                return outcome
            passing = isinstance(outcome, Unreachable) or outcome.status_code in PASSING
            retry_after = _retry_after(outcome)
            delay = delay_seconds(attempt, retry_after, random.random())
            if not passing or time.monotonic() + delay > give_up_at or self._sleep(delay):
                raise _refusal(outcome) if isinstance(outcome, httpx.Response) else outcome
            attempt += 1

    def _attempt(self, request: httpx.Request) -> httpx.Response | Unreachable:
        try:
            return self._http.send(request)
        except httpx.RequestError as error:
            return Unreachable(self._url, str(error) or type(error).__name__)


def _trust(url: str) -> bool | ssl.SSLContext:
    """Whom to trust: to load all authorities takes longer than most requests, and for plain HTTP
    there is none to ask."""
    is_plain = httpx.URL(url).scheme == "http"
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True


def _checked(url: str) -> str:
    """The address without a slash at its end. Raises ClientError."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ClientError(f"{url!r} is not an address: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ClientError(f"{url!r} is not an address: http://HOST:PORT is expected")
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    """Raises ClientError where it cannot be sent. The HTTP library would show it in its error."""
    if not (key.isascii() and key.isprintable() and key.strip() == key != ""):
        raise ClientError("the API key has characters that no key has, such as the end of a line")
    return key


def _retry_after(outcome: httpx.Response | Unreachable) -> str | None:
    return outcome.headers.get("Retry-After") if isinstance(outcome, httpx.Response) else None


def _refusal(response: httpx.Response) -> Refused:
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a proxy's page, not the daemon's problem
        problem = Problem(title=response.reason_phrase)
    return Refused(response.status_code, problem)


def _decoded(response: httpx.Response, answer: type[T]) -> T:
    try:
        return msgspec.json.decode(response.content, type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(f"{response.request.url.host} does not answer as logd: {error}") from error
