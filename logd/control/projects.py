"""Projects, who is assigned to them, and the logs that deleted ones leave behind."""

from msgspec.structs import replace

from logd.control import fields, permissions
from logd.control.errors import NotFound
from logd.control.ledger import Ledger, caller_of, org_of, project_of
from logd.control.model import Assignment, Project, User
from logd.control.records import Doomed, pair_key
from logd.control.state import State
from logd.entry import ProjectId


class Projects(Ledger):
    """Wherever a project is named, `org_id` is the organisation in whose path it was asked for:
    NotFound(project) where it is another's."""

    def create_project(
        self, caller: str, org_id: str, name: str, color: str | None = None
    ) -> Project:
        """[thread] `color` None: the one that the organisation uses least.

        NotFound(organisation); Forbidden(`admin_required`), also for a stranger; InvalidField.
        """
        name = fields.name(name)
        color = fields.color(color) if color is not None else None
        with self._transaction() as change:
            user, org = caller_of(change.state, caller), org_of(change.state, org_id)
            permissions.check_creates_project(change.state.standing_in_org(user, org.id))
            siblings = change.state.projects.where("org", org.id)
            project = Project(
                id=ProjectId(self._new_id()),
                org_id=org.id,
                name=name,
                color=color or fields.next_color(sibling.color for sibling in siblings),
                created_at_ns=change.now_ns,
                updated_at_ns=change.now_ns,
            )
            change.put(project)
            return project

    def projects_of(self, caller: str, org_id: str) -> tuple[Project, ...]:
        """The organisation's projects that the caller may see, oldest first."""
        state = self._state
        user, org = caller_of(state, caller), org_of(state, org_id)
        permissions.check_sees_org(state.standing_in_org(user, org.id))
        seen = [
            project
            for project in state.projects.where("org", org.id)
            if permissions.sees_project(state.standing_in_project(user, project))
        ]
        return tuple(sorted(seen, key=lambda project: (project.created_at_ns, project.id)))

    def update_project(
        self,
        caller: str,
        project_id: str,
        *,
        org_id: str | None = None,
        name: str | None = None,
        color: str | None = None,
    ) -> Project:
        """[thread] Change what is not None. InvalidField."""
        name = fields.name(name) if name is not None else None
        color = fields.color(color) if color is not None else None
        with self._transaction() as change:
            project = managed_project(change.state, caller, project_id, org_id)
            changed = replace(
                project,
                name=project.name if name is None else name,
                color=project.color if color is None else color,
                updated_at_ns=max(change.now_ns, project.updated_at_ns),
            )
            change.put(changed)
            return changed

    def delete_project(self, caller: str, project_id: str, *, org_id: str | None = None) -> None:
        """[thread] Its keys and assignments go with it, at once. Its logs are to be removed: it is
        in `doomed_projects` until they are."""
        with self._transaction() as change:
            change.drop_project(managed_project(change.state, caller, project_id, org_id))

    def assignees(
        self, caller: str, project_id: str, *, org_id: str | None = None
    ) -> tuple[User, ...]:
        """The users assigned to a project by email address, for admins."""
        state = self._state
        project = administered_project(state, caller, project_id, org_id)
        found = [
            user
            for assignment in state.assignments.where("project", project.id)
            if (user := state.users.get(assignment.user_id)) is not None
        ]
        return tuple(sorted(found, key=lambda user: fields.email_key(user.email)))

    def assign(
        self, caller: str, project_id: str, user_id: str, *, org_id: str | None = None
    ) -> User:
        """[thread] Let a member read the project; nothing changes where he may already.

        NotFound(member) where the user is not in the organisation.
        """
        with self._transaction() as change:
            project = managed_project(change.state, caller, project_id, org_id)
            user = change.state.users.get(user_id)
            if user is None or change.state.role(user.id, project.org_id) is None:
                raise NotFound("member")
            if pair_key(project.id, user.id) not in change.state.assignments:
                change.put(Assignment(project.id, user.id))
            return user

    def unassign(
        self, caller: str, project_id: str, user_id: str, *, org_id: str | None = None
    ) -> None:
        """[thread] NotFound(assignment)."""
        with self._transaction() as change:
            project = managed_project(change.state, caller, project_id, org_id)
            assignment = change.state.assignments.get(pair_key(project.id, user_id))
            if assignment is None:
                raise NotFound("assignment")
            change.drop(assignment)

    def doomed_projects(self) -> tuple[ProjectId, ...]:
        """Deleted projects whose logs are still to be removed; they outlive a crash."""
        return tuple(doomed.project_id for doomed in self._state.doomed)

    def project_purged(self, project_id: str) -> None:
        """[thread] The logs of a doomed project are gone. NotFound(project)."""
        with self._transaction() as change:
            doomed = change.state.doomed.get(project_id)
            if doomed is None:
                raise NotFound("project")
            change.drop(Doomed(doomed.project_id))


def managed_project(
    state: State, caller: str, project_id: str, org_id: str | None = None
) -> Project:
    """The project, which the caller may change."""
    user, project = caller_of(state, caller), project_of(state, project_id, org_id)
    permissions.check_manages_project(state.standing_in_project(user, project))
    return project


def administered_project(
    state: State, caller: str, project_id: str, org_id: str | None = None
) -> Project:
    """The project, whose keys and assignments the caller may see."""
    user, project = caller_of(state, caller), project_of(state, project_id, org_id)
    permissions.check_sees_project_administration(state.standing_in_project(user, project))
    return project
