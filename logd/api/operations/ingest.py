"""Taking entries in."""

from collections.abc import Mapping

import msgspec

from logd.api import content
from logd.api.errors import Fault, InvalidRequest, Unauthenticated
from logd.api.exchange import Body, Call, Head, Response, raw_json_response
from logd.api.joining import joined
from logd.api.problems import entry_faults
from logd.api.reading import idempotency_key
from logd.api.service import Services
from logd.control.model import KeyPrincipal
from logd.daemon.bodies import Ingested


def check_head(head: Head, query: Mapping[str, str]) -> None:
    """What can be refused before the body is read. Raises UnsupportedMedia, InvalidRequest."""
    content.is_ndjson(head)
    content.encoding_of(head)
    idempotency_key(head)
    if query.get("partial", "false") not in ("true", "false"):
        raise InvalidRequest(
            Fault("invalid_value", "partial must be true or false", parameter="partial")
        )


async def read_body(head: Head, body: Body, max_bytes: int) -> bytes:
    """The plain body. Raises as Body.read and content.decompress do."""
    sent = await body.read(max_bytes)
    return await content.decompress(sent, content.encoding_of(head), max_bytes, body)


async def ingest(services: Services, call: Call) -> Response:
    """All entries or none: 200. The good ones of a mixed batch, where asked for: 207."""
    if not isinstance(call.principal, KeyPrincipal):
        raise Unauthenticated("credential_missing", "this needs an API key")
    partial = call.query.get("partial") == "true"
    done = await services.ingest.store(
        call.principal.project_id,
        call.body,
        ndjson=content.is_ndjson(call.head),
        partial=partial,
        idempotency_key=idempotency_key(call.head),
    )
    return raw_json_response(await joined(_pieces(done)), _status(done))


def receipt(done: Ingested) -> Response:
    """Of few entries."""
    return raw_json_response(b"".join(_pieces(done)), _status(done))


def _status(done: Ingested) -> int:
    return 207 if done.errors else 200


def _pieces(done: Ingested) -> tuple[bytes, ...]:
    beginning = b'{"ingested":%d,"ids":' % done.count
    if not done.errors:
        return beginning, done.ids_json, b"}"
    faults = msgspec.json.encode(entry_faults(done.errors))
    return beginning, done.ids_json, b',"errors":', faults, b"}"
