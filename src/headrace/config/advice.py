"""What is allowed in a file, but hardly meant."""

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from itertools import chain

from headrace.config.errors import Fault
from headrace.config.idle import Idle, idle_options
from headrace.config.options.file import FileOptions
from headrace.config.options.group import Options, no_effect
from headrace.config.secret import is_reference
from headrace.config.sections import Sections
from headrace.config.source import Location, fault, value_at

SHORT_SECRET = 20


def advise(sections: Sections, exposed: bool) -> tuple[Fault, ...]:
    """Warnings; `exposed` says that other users of the machine may read the file."""
    findings = [
        *_empty(sections),
        *_unused(sections),
        *_keys(sections),
        *_owners(sections),
        *_without_effect(sections),
    ]
    if exposed:
        message = "stands in a file that others may read; use env:NAME or file:PATH, or run chmod 600 on it"
        findings += [(location, message) for location in _literal_secrets(sections)]
    found = (fault(sections.root, location, message) for location, message in findings)
    return tuple(sorted(found, key=lambda one: one.line or 0))


_Finding = tuple[Location, str]


def _empty(sections: Sections) -> Iterator[_Finding]:
    if not sections.channels:
        yield ("channels",), "none: no request can go anywhere"
    if not sections.models:
        yield ("models",), "none: every request gets 404 model_not_found"
    if not sections.keys:
        yield ("keys",), "none: every request gets 401"


def _unused(sections: Sections) -> Iterator[_Finding]:
    routed = {route.channel for model in sections.models.values() if model for route in model.routes}
    for name, channel in sections.channels.items():
        if sections.models and channel and name not in routed and not channel.home:
            yield ("channels", name), "no model has a route to it"


def _keys(sections: Sections) -> Iterator[_Finding]:
    # Many keys allow the same few names and patterns; each is compared with all models once.
    useful: dict[str, bool] = {}
    for index, key in ((index, key) for index, key in enumerate(sections.keys) if key):
        if len(key.secret.text) < SHORT_SECRET:
            yield ("keys", index, "secret"), f"is shorter than {SHORT_SECRET} characters and may be guessed"
        for place, allowed in enumerate(key.models if sections.models else ()):
            if allowed not in useful:
                useful[allowed] = _fits_a_model(allowed, sections.models)
            if not useful[allowed]:
                yield ("keys", index, "models", place), "no model has a name like this"


def _owners(sections: Sections) -> Iterator[_Finding]:
    names = {owner.name for owner in sections.owners if owner}
    for index, key in enumerate(sections.keys):
        if names and key and key.owner and key.owner not in names:
            yield ("keys", index, "owner"), "names no owner of this file: it has no limits or budget from here"


def _fits_a_model(allowed: str, models: Collection[str]) -> bool:
    """Whether a key's name or pattern can ever meet a model; two patterns may."""
    if allowed in models:
        return True
    patterns = [name for name in models if "*" in name]
    if "*" in allowed:
        return bool(patterns) or any(fnmatchcase(name, allowed) for name in models)
    return any(fnmatchcase(allowed, pattern) for pattern in patterns)


def _literal_secrets(sections: Sections) -> Iterator[Location]:
    for store in (("state", "database"), ("state", "shared")):
        if "@" in str(url := value_at(sections.root, store)) and not is_reference(str(url)):
            yield store
    for name, channel in sections.channels.items():
        for index, credential in enumerate(channel.credentials if channel else ()):
            if credential.secret.literal:
                yield ("channels", name, "credentials", index, "secret")
        if channel and channel.proxy and channel.proxy.authorization:
            place = ("channels", name, "proxy")
            if not is_reference(str(value_at(sections.root, place))):
                yield place
    for index, key in enumerate(sections.keys):
        if key and key.secret.literal:
            yield ("keys", index, "secret")


def _without_effect(sections: Sections) -> Iterator[_Finding]:
    """Each option that is set and does nothing, once, with the number of its other places."""
    found: dict[str, list[Idle]] = {}
    for one in chain(_idle_waits(sections), *(idle_options(group, place) for group, place in _groups(sections))):
        found.setdefault(one.option, []).append(one)
    for places in found.values():
        more = f"; likewise in {len(places) - 1} more places" if len(places) > 1 else ""
        yield places[0].location, f"{places[0].message}{more}"


def _idle_waits(sections: Sections) -> Iterator[Idle]:
    """The section `limits` does nothing as a whole, and is marked so among the sections."""
    mark = no_effect(FileOptions.model_fields["limits"])
    if mark and sections.limits and sections.limits.model_fields_set:
        yield Idle("limits", ("limits",), mark.text)


def _groups(sections: Sections) -> Iterator[tuple[Options, tuple[str | int, ...]]]:
    """All groups of the file without faults, with their places."""
    groups: list[tuple[Options | None, tuple[str | int, ...]]] = [
        (sections.server, ("server",)),
        (sections.state, ("state",)),
        *((one, ("channels", name)) for name, one in sections.channels.items()),
        *((one, ("models", name)) for name, one in sections.models.items()),
        *((one, ("keys", index)) for index, one in enumerate(sections.keys)),
        *((one, ("owners", index)) for index, one in enumerate(sections.owners)),
    ]
    return ((group, location) for group, location in groups if group is not None)
