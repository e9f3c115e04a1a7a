"""Organisations and who belongs to them."""

from msgspec.structs import replace

from logd.control import fields, permissions
from logd.control.errors import AlreadyMember, InvalidField, LastAdmin, NotFound, SlugTaken
from logd.control.ledger import Ledger, Transaction, caller_of, org_of
from logd.control.model import Membership, Org, OrgId, Role, User
from logd.control.records import pair_key
from logd.control.state import State
from logd.entry import ProjectId


class Organisations(Ledger):
    """Organisations, their members and their last admins."""

    def create_org(self, caller: str, name: str, slug: str) -> Org:
        """[thread] By any user, who becomes its admin. SlugTaken, InvalidField."""
        name, slug = fields.name(name), fields.slug(slug)
        with self._transaction() as change:
            user = caller_of(change.state, caller)
            _check_slug_free(change.state, slug, None)
            org = Org(OrgId(self._new_id()), name, slug, change.now_ns)
            change.put(org)
            change.put(Membership(org.id, user.id, Role.ADMIN))
            return org

    def orgs_of(self, user_id: str) -> tuple[tuple[Org, Role], ...]:
        """The organisations a user is a member of, oldest first, and as what."""
        state = self._state
        found = [
            (org, membership.role)
            for membership in state.memberships.where("user", user_id)
            if (org := state.orgs.get(membership.org_id)) is not None
        ]
        return tuple(sorted(found, key=lambda pair: (pair[0].created_at_ns, pair[0].id)))

    def org(self, caller: str, org_id: str) -> Org:
        """An organisation that the caller may see. NotFound(organisation)."""
        state = self._state
        user, org = caller_of(state, caller), org_of(state, org_id)
        permissions.check_sees_org(state.standing_in_org(user, org.id))
        return org

    def update_org(
        self, caller: str, org_id: str, *, name: str | None = None, slug: str | None = None
    ) -> Org:
        """[thread] Change what is not None. SlugTaken, InvalidField."""
        name = fields.name(name) if name is not None else None
        slug = fields.slug(slug) if slug is not None else None
        with self._transaction() as change:
            org = self._managed(change.state, caller, org_id)
            if slug is not None:
                _check_slug_free(change.state, slug, org)
            changed = replace(
                org,
                name=org.name if name is None else name,
                slug=org.slug if slug is None else slug,
            )
            change.put(changed)
            return changed

    def delete_org(self, caller: str, org_id: str) -> tuple[ProjectId, ...]:
        """[thread] The organisation with all that is in it goes. The ids of its projects, whose
        logs are to be removed: they are in `doomed_projects` until they are."""
        with self._transaction() as change:
            org = self._managed(change.state, caller, org_id)
            projects = change.state.projects.where("org", org.id)
            for project in projects:
                change.drop_project(project)
            for membership in change.state.memberships.where("org", org.id):
                change.drop(membership)
            change.drop(org)
            return tuple(project.id for project in projects)

    def members(self, caller: str, org_id: str) -> tuple[tuple[User, Role], ...]:
        """Everybody in the organisation by email address, for its admins."""
        state = self._state
        asking, org = caller_of(state, caller), org_of(state, org_id)
        permissions.check_sees_members(state.standing_in_org(asking, org.id))
        found = [
            (user, membership.role)
            for membership in state.memberships.where("org", org.id)
            if (user := state.users.get(membership.user_id)) is not None
        ]
        return tuple(sorted(found, key=lambda pair: fields.email_key(pair[0].email)))

    def add_member(self, caller: str, org_id: str, email: str, role: Role) -> tuple[User, Role]:
        """[thread] AlreadyMember; InvalidField(email, unknown) where there is no such user."""
        with self._transaction() as change:
            org = self._peopled(change.state, caller, org_id)
            user = change.state.user_by_email(email)
            if user is None:
                raise InvalidField("email", "unknown", "there is no user with this address")
            if change.state.role(user.id, org.id) is not None:
                raise AlreadyMember
            change.put(Membership(org.id, user.id, role))
            return user, role

    def update_member(
        self, caller: str, org_id: str, user_id: str, role: Role
    ) -> tuple[User, Role]:
        """[thread] Change a member's role. NotFound(member), LastAdmin(organisation)."""
        with self._transaction() as change:
            org = self._peopled(change.state, caller, org_id)
            user = _member_of(change.state, org.id, user_id)
            before = change.state.role(user.id, org.id)
            change.put(Membership(org.id, user.id, role))
            if before is Role.ADMIN:
                _check_admin_left(change, org.id)
            return user, role

    def remove_member(self, caller: str, org_id: str, user_id: str) -> None:
        """[thread] By an admin, or by the member himself. His assignments go too.

        NotFound(member), LastAdmin(organisation).
        """
        with self._transaction() as change:
            org = self._left_by(change.state, caller, org_id, user_id)
            membership = change.state.memberships.get(pair_key(org.id, user_id))
            if membership is None:
                raise NotFound("member")
            change.drop(membership)
            for assignment in change.state.assignments.where("user", user_id):
                project = change.state.projects.get(assignment.project_id)
                if project is not None and project.org_id == org.id:
                    change.drop(assignment)
            if membership.role is Role.ADMIN:
                _check_admin_left(change, org.id)

    def _managed(self, state: State, caller: str, org_id: str) -> Org:
        user, org = caller_of(state, caller), org_of(state, org_id)
        permissions.check_manages_org(state.standing_in_org(user, org.id))
        return org

    def _peopled(self, state: State, caller: str, org_id: str) -> Org:
        """The organisation, whose members the caller may change."""
        user, org = caller_of(state, caller), org_of(state, org_id)
        permissions.check_manages_members(state.standing_in_org(user, org.id))
        return org

    def _left_by(self, state: State, caller: str, org_id: str, user_id: str) -> Org:
        """The organisation, from which the caller may remove this user."""
        if caller != user_id:
            return self._peopled(state, caller, org_id)
        user, org = caller_of(state, caller), org_of(state, org_id)
        permissions.check_sees_org(state.standing_in_org(user, org.id))
        return org


def _check_slug_free(state: State, slug: str, org: Org | None) -> None:
    holder = state.orgs.one("slug", slug)
    if holder is not None and (org is None or holder.id != org.id):
        raise SlugTaken(slug)


def _member_of(state: State, org_id: OrgId, user_id: str) -> User:
    user = state.users.get(user_id)
    if user is None or state.role(user.id, org_id) is None:
        raise NotFound("member")
    return user


def _check_admin_left(change: Transaction, org_id: OrgId) -> None:
    if not change.outcome().has_enabled_admin(org_id):
        raise LastAdmin("organisation")
