"""Users, their passwords and their personal access tokens."""

from msgspec.structs import replace

from logd.control import fields, passwords, permissions, secrets
from logd.control.errors import EmailTaken, LastAdmin, NotFound
from logd.control.ledger import Ledger, Transaction, caller_of
from logd.control.model import Token, TokenId, User, UserId
from logd.control.records import TokenRecord


class People(Ledger):
    """Who there is, and how they prove it."""

    def ensure_user(self, email: str) -> User:
        """[thread] The user of this address, created if there is none; the first one of all is
        server admin. For the command line: no permission is asked for. InvalidField."""
        email = fields.email(email)
        with self._transaction() as change:
            known = change.state.user_by_email(email)
            return known or self._new_user(change, email, None, server_admin=False)

    def create_user(
        self, caller: str, email: str, name: str | None = None, *, server_admin: bool = False
    ) -> User:
        """[thread] By a server admin. `name` None: what stands before the @. EmailTaken,
        InvalidField."""
        email = fields.email(email)
        with self._transaction() as change:
            permissions.check_server_admin(caller_of(change.state, caller))
            if change.state.user_by_email(email) is not None:
                raise EmailTaken(email)
            return self._new_user(change, email, name, server_admin=server_admin)

    def user(self, user_id: str) -> User:
        """No permission is asked for. NotFound(user)."""
        user = self._state.users.get(user_id)
        if user is None:
            raise NotFound("user")
        return user

    def user_by_email(self, email: str) -> User | None:
        """No permission is asked for. Upper and lower case are the same."""
        return self._state.user_by_email(email)

    def users(self, caller: str) -> tuple[User, ...]:
        """All users, oldest first, for a server admin."""
        state = self._state
        permissions.check_server_admin(caller_of(state, caller))
        return tuple(sorted(state.users, key=lambda user: (user.created_at_ns, user.id)))

    def update_user(
        self,
        caller: str,
        user_id: str,
        *,
        name: str | None = None,
        email: str | None = None,
        disabled: bool | None = None,
        server_admin: bool | None = None,
    ) -> User:
        """[thread] Change what is not None: `name` by oneself, everything by a server admin.

        EmailTaken, InvalidField, LastAdmin(server). NotFound(user) for others' ids.
        """
        name = fields.name(name) if name is not None else None
        email = fields.email(email) if email is not None else None
        with self._transaction() as change:
            user = self._oneself_or_any(change, caller, user_id)
            if (email, disabled, server_admin) != (None, None, None):
                permissions.check_server_admin(caller_of(change.state, caller))
            if email is not None:
                self._check_email_free(change, email, user)
            changed = replace(
                user,
                name=user.name if name is None else name,
                email=user.email if email is None else email,
                disabled=user.disabled if disabled is None else disabled,
                server_admin=user.server_admin if server_admin is None else server_admin,
            )
            change.put(changed)
            loses_power = user.server_admin and (changed.disabled or not changed.server_admin)
            if loses_power and not change.outcome().has_enabled_server_admin():
                raise LastAdmin("server")
            return changed

    def set_password(self, caller: str, user_id: str, password: str) -> User:
        """[thread, 30 ms of CPU, 19 MiB] By oneself or a server admin. InvalidField."""
        password_hash = passwords.hash_password(password, self._random_bytes)
        with self._transaction() as change:
            user = self._oneself_or_any(change, caller, user_id)
            changed = replace(user, password_hash=password_hash)
            change.put(changed)
            return changed

    def verify_password(self, email: str, password: str) -> User | None:
        """[thread, 30 ms of CPU, 19 MiB] Whose password this is. None where it is wrong, the
        user unknown, disabled or without a password: after the same work in each case."""
        user = self._state.user_by_email(email)
        right = passwords.matches(None if user is None else user.password_hash, password)
        return user if right and user is not None and not user.disabled else None

    def issue_token(
        self, user_id: str, name: str, expires_at_ns: int | None = None
    ) -> tuple[Token, str]:
        """[thread] A new token that acts as this user, and its secret, this once.

        InvalidField; Forbidden(`user_disabled`).
        """
        name = fields.name(name)
        secret = secrets.new_secret(secrets.TOKEN, self._random_bytes)
        with self._transaction() as change:
            token = Token(
                id=TokenId(self._new_id()),
                user_id=caller_of(change.state, user_id).id,
                name=name,
                prefix=secrets.display_prefix(secret),
                created_at_ns=change.now_ns,
                expires_at_ns=fields.expiry(expires_at_ns, change.now_ns),
            )
            change.put(TokenRecord(token, secrets.digest(secret)))
            return token, secret

    def tokens_of(self, user_id: str) -> tuple[Token, ...]:
        """A user's tokens, oldest first."""
        tokens = [record.token for record in self._state.tokens.where("user", user_id)]
        tokens.sort(key=lambda token: (token.created_at_ns, token.id))
        return tuple(
            replace(token, last_used_at_ns=self._last_used.get(token.id)) for token in tokens
        )

    def revoke_token(self, user_id: str, token_id: str) -> None:
        """[thread] It is refused from now on. NotFound(token) where it is not this user's."""
        with self._transaction() as change:
            record = change.state.tokens.get(token_id)
            if record is None or record.token.user_id != user_id:
                raise NotFound("token")
            change.drop_credential(record)

    def _new_user(
        self, change: Transaction, email: str, name: str | None, *, server_admin: bool
    ) -> User:
        user = User(
            id=UserId(self._new_id()),
            email=email,
            name=fields.name(email.partition("@")[0] if name is None else name),
            server_admin=server_admin or not len(change.state.users),
            disabled=False,
            password_hash=None,
            created_at_ns=change.now_ns,
        )
        change.put(user)
        return user

    def _oneself_or_any(self, change: Transaction, caller: str, user_id: str) -> User:
        """The user to be changed: the caller himself, or anyone if he is a server admin."""
        asking = caller_of(change.state, caller)
        if asking.id == user_id:
            return asking
        if not asking.server_admin:
            raise NotFound("user")
        user = change.state.users.get(user_id)
        if user is None:
            raise NotFound("user")
        return user

    def _check_email_free(self, change: Transaction, email: str, user: User) -> None:
        holder = change.state.user_by_email(email)
        if holder is not None and holder.id != user.id:
            raise EmailTaken(email)
