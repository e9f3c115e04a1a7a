"""The control data: users, tokens, organisations, members, projects, assignments and API keys.

Reads answer from memory and may be called on the event loop. Methods marked [thread] write
(journal, sync, LMDB) or hash a password and belong in a worker thread; each is one transaction,
durable and visible to all when it returns, and may raise StorageFull or StorageFailed: then
nothing has changed.

`caller` is the id of the user who asks. Each method with a `caller` raises
Forbidden(`user_disabled`) where he is gone or disabled meanwhile, NotFound for what he may not know
of, Forbidden(`admin_required`) for what he may see but not do. Ids may be any text: what is no id
is not found.

The methods are in the chapters: `people`, `organisations`, `projects`, `keys`, `access` (what
every request asks) and `ledger` (opening, closing, transactions).
"""

from logd.control.access import Access
from logd.control.keys import Keys
from logd.control.organisations import Organisations
from logd.control.people import People
from logd.control.projects import Projects


class Control(People, Organisations, Projects, Keys, Access):
    """`with Control.open(directory, clock=..., random_bytes=...) as control: ...`"""
