"""For every request: whose secret is this, and may he? All from memory, on the event loop."""

from logd.control import permissions, secrets
from logd.control.ledger import Ledger, caller_of, project_of
from logd.control.model import KeyPrincipal, Principal, Project, Scope, UserId, UserPrincipal
from logd.control.state import State
from logd.entry import ProjectId


class Access(Ledger):
    """Authentication and the rules of the data plane."""

    def authenticate(self, secret: str) -> Principal | None:
        """Who a secret speaks for; None where it is malformed, unknown, expired or revoked, or
        its user disabled. Notes the use. Any text may be given; never blocks."""
        digest = secrets.recognise(secret)
        if digest is None:
            return None
        state, now_ns = self._state, self._clock()
        if secret.startswith(secrets.KEY):
            return self._key_principal(state, digest, now_ns)
        return self._user_principal(state, digest, now_ns)

    def _key_principal(self, state: State, digest: bytes, now_ns: int) -> KeyPrincipal | None:
        record = state.keys.one("digest", digest)
        if record is None or not record.accepts(digest, now_ns):
            return None
        key = record.key
        self._last_used[key.id] = now_ns
        return KeyPrincipal(key.id, key.project_id, key.scopes)

    def _user_principal(self, state: State, digest: bytes, now_ns: int) -> UserPrincipal | None:
        record = state.tokens.one("digest", digest)
        if record is None or not record.accepts(now_ns):
            return None
        user = state.users.get(record.token.user_id)
        if user is None or user.disabled:
            return None
        self._last_used[record.token.id] = now_ns
        return UserPrincipal(user.id, user.server_admin)

    def may_read_logs(self, principal: Principal, project_id: str) -> Project:
        """The project whose logs this caller may read.

        A key: Forbidden(`wrong_project`, `scope_missing`). A person: NotFound(project).
        """
        if isinstance(principal, KeyPrincipal):
            permissions.check_key(principal, project_id, Scope.READ)
            return project_of(self._state, project_id)
        return self.may_read_project(principal, project_id)

    def may_ingest(self, principal: Principal, project_id: str) -> Project:
        """The project that this caller may send entries to: the key's own.

        Forbidden(`key_required`) for a person, Forbidden(`wrong_project`, `scope_missing`).
        """
        key = permissions.machine(principal)
        permissions.check_key(key, project_id, Scope.INGEST)
        return project_of(self._state, project_id)

    def may_read_project(self, principal: Principal, project_id: str) -> Project:
        """The project, for a person who may see it. A key: Forbidden(`user_required`)."""
        return self.project(permissions.person(principal), project_id)

    def may_manage_project(self, principal: Principal, project_id: str) -> Project:
        """The project, for an admin of its organisation: settings, alert rules and so on.

        NotFound(project), Forbidden(`admin_required`). A key: Forbidden(`user_required`).
        """
        state = self._state
        user = caller_of(state, permissions.person(principal))
        project = project_of(state, project_id)
        permissions.check_manages_project(state.standing_in_project(user, project))
        return project

    def project(self, caller: str, project_id: str, *, org_id: str | None = None) -> Project:
        """A project that the caller may see. `org_id`: NotFound where it is another's."""
        state = self._state
        user = caller_of(state, caller)
        project = project_of(state, project_id, org_id)
        permissions.check_sees_project(state.standing_in_project(user, project))
        return project

    def user_of(self, principal: Principal) -> UserId:
        """The person who calls. A key: Forbidden(`user_required`)."""
        return permissions.person(principal)

    def project_exists(self, project_id: str) -> bool:
        return project_id in self._state.projects

    def find_project(self, project_id: str) -> Project | None:
        """No permission is asked for."""
        return self._state.projects.get(project_id)

    def project_ids(self) -> tuple[ProjectId, ...]:
        return tuple(project.id for project in self._state.projects)
