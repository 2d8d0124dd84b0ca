"""The commands of `headrace keys`."""

import time
from typing import Annotated

import typer

from headrace.cli.configuration import DEFAULT_FILE, ConfigOption
from headrace.cli.keys.fields import KeyFields, put_expiry
from headrace.cli.keys.secret import new_secret
from headrace.cli.keys.view import SecretReport, facts, listed, report, state_of, table
from headrace.cli.moments import iso_of, span_of, words_of
from headrace.cli.object_document import ObjectDocument
from headrace.cli.option_groups import grouped
from headrace.cli.output import JsonOption, Section, echo_json, fail, show
from headrace.cli.registry import Deleted, Registry, registry
from headrace.cli.standing import Standing
from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.model.key import Key, digest_key, key_digest

KEY = ObjectKind.KEY
ONCE = "it is shown this once: keep it now; `headrace keys rotate` makes another"

app = typer.Typer(no_args_is_help=True, help="Keys of clients: made, shown, changed, replaced, revoked.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The key's name.")]
OwnerOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only keys of this owner.")]
GraceOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="How long the old secret works on, such as 24h; not at all, else.")
]
NowOption = Annotated[bool, typer.Option("--now", help="End its running streams, too.")]
AtOption = Annotated[str | None, typer.Option("--at", metavar="WHEN", help="A date or a time, or `never`.")]
InOption = Annotated[str | None, typer.Option("--in", metavar="TIME", help="A time from now, such as 30d or 12h.")]


@app.command("create")
@grouped
def create(
    name: NameArgument, fields: KeyFields, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False
) -> None:
    """Make a key, and show its secret this once.

    The database keeps no more than the secret's digest. The key works within a second, in every worker.
    """
    document = ObjectDocument()
    fields.put_into_key(document, time.time())
    with registry(config, writes=True) as found:
        secret = _put_secret(found, document)
        found.create(document.stored(KEY, name))
        _show_secret(found, name, secret, json=json)


@app.command("list")
def list_(owner: OwnerOption = None, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """List all keys, those of the file and those of the database."""
    now = time.time()
    with registry(config) as found:
        rows = [one for one in listed(found) if owner in (None, one.value.owner if one.value is not None else "")]
    if json:
        echo_json([report(one, now) for one in rows])
    elif rows:
        show([table(rows, now)])
    else:
        typer.echo("there are no keys; `headrace keys create NAME` makes one", err=True)


@app.command("show")
def show_(name: NameArgument, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """Show a key. Its secret is not known any more."""
    with registry(config) as found:
        _show(found, name, json=json)


@app.command("set")
@grouped
def set_(name: NameArgument, fields: KeyFields, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """Change a key of the database.

    What is not given stays as it is; `none` takes an option away. What runs already keeps what it began with.
    """
    with registry(config, writes=True) as found:
        before = found.own(KEY, name)
        document = ObjectDocument(before)
        fields.put_into_key(document, time.time())
        _replace(found, before, document)
        _show(found, name, json=json)


@app.command("rotate")
def rotate(
    name: NameArgument, grace: GraceOption = None, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False
) -> None:
    """Give a key another secret, and show that this once.

    Its name, limits and budget stay, and what was spent. With --grace the old secret works on for so long.
    """
    now = time.time()
    with registry(config, writes=True) as found:
        before = found.own(KEY, name)
        document = ObjectDocument(before)
        _put_former(found, before, document, now, span_of(grace, "--grace") if grace is not None else None)
        secret = _put_secret(found, document)
        _replace(found, before, document)
        _show_secret(found, name, secret, json=json)


@app.command("revoke")
def revoke(
    name: NameArgument, now: NowOption = False, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False
) -> None:
    """Disable a key of the database.

    New requests with it get 403. Streams that run may end by themselves, unless --now ends them.
    """
    with registry(config, writes=True) as found:
        before = found.own(KEY, name)
        document = ObjectDocument(before)
        document.put("state", "disabled")
        if now:
            document.put("stop", True)
        _replace(found, before, document)
        _tell(found, name, f"key {name} is disabled" + ("; its streams are ended" if now else ""), json=json)


@app.command("enable")
def enable(name: NameArgument, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """Let a key that was revoked work again."""
    with registry(config, writes=True) as found:
        before = found.own(KEY, name)
        document = ObjectDocument(before)
        document.drop("state")
        document.drop("stop")
        _replace(found, before, document)
        _tell(found, name, f"key {name} is {state_of(_one(found, name), time.time())}", json=json)


@app.command("expire")
def expire(
    name: NameArgument,
    at: AtOption = None,
    in_: InOption = None,
    config: ConfigOption = DEFAULT_FILE,
    json: JsonOption = False,
) -> None:
    """Say when a key of the database stops working."""
    if (at is None) == (in_ is None):
        raise typer.BadParameter("give either --at or --in")
    now = time.time()
    with registry(config, writes=True) as found:
        before = found.own(KEY, name)
        document = ObjectDocument(before)
        if in_ is not None:
            document.put("expires", iso_of(now + span_of(in_, "--in")))
        else:
            put_expiry(document, str(at), now, "--at")
        _replace(found, before, document)
        key = next(one for one in found.parts.keys if one.name == name)
        _tell(found, name, f"key {name} expires: {words_of(key.expires)}", json=json)


@app.command("delete")
def delete(name: NameArgument, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """Remove a key of the database; what the ledger has of it stays."""
    with registry(config, writes=True) as found:
        found.remove(found.own(KEY, name))
    if json:
        echo_json(Deleted(name))
    else:
        typer.echo(f"key {name} is deleted")


# ---- parts


def _put_secret(found: Registry, document: ObjectDocument) -> str:
    """Give the document the digest of a new secret."""
    secret = new_secret()
    document.drop("secret")
    document.put("digest", _digest(found, secret))
    return secret


def _put_former(
    found: Registry, before: StoredObject, document: ObjectDocument, now: float, grace_s: float | None
) -> None:
    """Keep what the old secret was for as long as it is to work on, and forget those whose time is over. Without grace
    none of them works on: who rotates at once has lost one."""
    former = []
    if grace_s is not None:
        key = next(iter(found.alone(before).keys), None)
        if key is None:
            fail(f"key {before.name} is broken: {found.problem(before)}; rotate it without --grace")
        former = [(key.digest, now + grace_s), *((one.digest, one.until) for one in key.former if one.until > now)]
    if former:
        document.put("former", [{"digest": digest.hex(), "until": iso_of(until)} for digest, until in former])
    else:
        document.drop("former")


def _digest(found: Registry, secret: str) -> str:
    return key_digest(digest_key(found.secret), secret.encode()).hex()


def _replace(found: Registry, before: StoredObject, document: ObjectDocument) -> None:
    found.replace(document.stored(KEY, before.name), before)


def _one(found: Registry, name: str) -> Standing[Key]:
    """The key of this name: the one that is served, where there are two."""
    rows = [one for one in listed(found) if one.name == name]
    if not rows:
        fail(f"there is no key {name}; `headrace keys list` shows all")
    return rows[0]


def _tell(found: Registry, name: str, words: str, *, json: bool) -> None:
    """What was done to a key."""
    if json:
        echo_json(report(_one(found, name), time.time()))
    else:
        typer.echo(words)


def _show(found: Registry, name: str, *, json: bool) -> None:
    now = time.time()
    one = _one(found, name)
    if json:
        echo_json(report(one, now))
    else:
        show([facts(one, now)])


def _show_secret(found: Registry, name: str, secret: str, *, json: bool) -> None:
    now = time.time()
    one = _one(found, name)
    if json:
        echo_json(SecretReport(secret, report(one, now)))
    else:
        show([Section(f"the secret of key {name}; {ONCE}", ((secret, ""),)), facts(one, now)])
