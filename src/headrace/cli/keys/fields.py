"""The options that make up a key, and the document that they come to."""

from dataclasses import dataclass
from typing import Annotated

import typer

from headrace.cli.allowance import NONE, AllowanceFields, put_text
from headrace.cli.moments import iso_of, moment_ahead
from headrace.cli.object_document import ObjectDocument


@dataclass(frozen=True, slots=True)
class KeyFields(AllowanceFields):
    """What a key is but for its name and secret; what is not given stays as it is."""

    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Who it belongs to.")] = None
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", metavar="MODEL", help="A model that it may use, or a pattern; may be repeated."),
    ] = None
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="When it stops working: a date, a time, or 30d, 12h from now.")
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", metavar="NAME=TEXT", help="A word about it, for reports; may be repeated."),
    ] = None
    ip: Annotated[
        list[str] | None, typer.Option(metavar="NETWORK", help="Where it may be used from; may be repeated.")
    ] = None
    origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="A web origin that may use it; may be repeated.")
    ] = None

    def put_into_key(self, document: ObjectDocument, now: float) -> None:
        """Set what is given, remove what is given as `none`; a label is removed as `NAME=`."""
        self.put_into(document)
        put_text(document, "owner", self.owner)
        for path, values in (("models", self.model), ("ips", self.ip), ("origins", self.origin)):
            if values == [NONE]:
                document.drop(path)
            elif values:
                document.put(path, values)
        if self.expires is not None:
            put_expiry(document, self.expires, now, "--expires")
        for label in self.label or ():
            _put_label(document, label)


def put_expiry(document: ObjectDocument, when: str, now: float, option: str) -> None:
    """Set when the key stops working; `never` and `none` take it away."""
    if when in {NONE, "never"}:
        document.drop("expires")
    else:
        document.put("expires", iso_of(moment_ahead(when, now, option)))


def _put_label(document: ObjectDocument, label: str) -> None:
    name, equals, text = label.partition("=")
    if not equals or not name:
        raise typer.BadParameter("must be NAME=TEXT", param_hint="--label")
    labels = dict(document.member("labels") or {})
    labels.pop(name, None)
    if text:
        labels[name] = text
    if labels:
        document.put("labels", labels)
    else:
        document.drop("labels")
