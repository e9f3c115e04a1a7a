"""API keys: one project's credentials for machines."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from logd.control import fields, secrets
from logd.control.errors import NotFound
from logd.control.ledger import Ledger
from logd.control.model import ALL_SCOPES, ApiKey, KeyId, Project, Scope
from logd.control.projects import administered_project, managed_project
from logd.control.records import MAX_RETIRED, KeyRecord, Retired
from logd.control.state import State


class Keys(Ledger):
    """All by admins of the project's organisation; a server admin may look."""

    def create_key(
        self,
        caller: str,
        project_id: str,
        name: str,
        scopes: Sequence[Scope] = ALL_SCOPES,
        expires_at_ns: int | None = None,
    ) -> tuple[ApiKey, str]:
        """[thread] A new key and its secret, this once. InvalidField."""
        name, granted = fields.name(name), fields.scopes(scopes)
        secret = secrets.new_secret(secrets.KEY, self._random_bytes)
        with self._transaction() as change:
            key = ApiKey(
                id=KeyId(self._new_id()),
                project_id=managed_project(change.state, caller, project_id).id,
                name=name,
                scopes=granted,
                prefix=secrets.display_prefix(secret),
                created_at_ns=change.now_ns,
                expires_at_ns=fields.expiry(expires_at_ns, change.now_ns),
            )
            change.put(KeyRecord(key, secrets.digest(secret)))
            return key, secret

    def keys_of(self, caller: str, project_id: str) -> tuple[ApiKey, ...]:
        """The project's keys, expired ones too, oldest first."""
        state = self._state
        project = administered_project(state, caller, project_id)
        keys = [record.key for record in state.keys.where("project", project.id)]
        keys.sort(key=lambda key: (key.created_at_ns, key.id))
        return tuple(map(self._as_used, keys))

    def key(self, caller: str, project_id: str, key_id: str) -> ApiKey:
        """NotFound(key) where it is another project's."""
        state = self._state
        project = administered_project(state, caller, project_id)
        return self._as_used(_record(state, project, key_id).key)

    def update_key(
        self,
        caller: str,
        project_id: str,
        key_id: str,
        *,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        expires_at_ns: int | UnsetType | None = UNSET,
    ) -> ApiKey:
        """[thread] Change what is given; `expires_at_ns` None: it never expires. InvalidField."""
        name = fields.name(name) if name is not None else None
        granted = fields.scopes(scopes) if scopes is not None else None
        with self._transaction() as change:
            project = managed_project(change.state, caller, project_id)
            record = _record(change.state, project, key_id)
            key = record.key
            if not isinstance(expires_at_ns, UnsetType):
                key = replace(key, expires_at_ns=fields.expiry(expires_at_ns, change.now_ns))
            key = replace(
                key,
                name=key.name if name is None else name,
                scopes=key.scopes if granted is None else granted,
            )
            change.put(replace(record, key=key))
        return self._as_used(key)

    def revoke_key(self, caller: str, project_id: str, key_id: str) -> None:
        """[thread] All its secrets are refused from now on. NotFound(key)."""
        with self._transaction() as change:
            project = managed_project(change.state, caller, project_id)
            change.drop_credential(_record(change.state, project, key_id))

    def rotate_key(
        self, caller: str, project_id: str, key_id: str, overlap_seconds: int = 0
    ) -> tuple[ApiKey, str]:
        """[thread] A new secret for the key, given this once. The one before works for
        `overlap_seconds` more (0 to 30 days), and so do those rotated out earlier, the latest eight
        of them, where they have not less time left: whoever rotates a secret that has leaked, and
        allows no overlap, is rid of all of them."""
        overlap_ns = fields.overlap_seconds(overlap_seconds) * 1_000_000_000
        secret = secrets.new_secret(secrets.KEY, self._random_bytes)
        with self._transaction() as change:
            project = managed_project(change.state, caller, project_id)
            record = _record(change.state, project, key_id)
            until_ns = change.now_ns + overlap_ns
            earlier = [Retired(r.digest, min(r.until_ns, until_ns)) for r in record.retired]
            retired = [*earlier, Retired(record.digest, until_ns)]
            working = [old for old in retired if old.until_ns > change.now_ns]
            key = replace(record.key, prefix=secrets.display_prefix(secret))
            change.put(KeyRecord(key, secrets.digest(secret), tuple(working[-MAX_RETIRED:])))
        return self._as_used(key), secret

    def _as_used(self, key: ApiKey) -> ApiKey:
        return replace(key, last_used_at_ns=self._last_used.get(key.id))


def _record(state: State, project: Project, key_id: str) -> KeyRecord:
    record = state.keys.get(key_id)
    if record is None or record.key.project_id != project.id:
        raise NotFound("key")
    return record
