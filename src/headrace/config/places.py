"""Where things are: addresses to listen on, base URLs, paths, names, and the fields of a request."""

import ipaddress
import re
from datetime import UTC, datetime
from typing import Annotated

from headrace.config.forms import Form, Reading
from headrace.model.channel import Auth, AuthForm, BaseUrl
from headrace.model.settings import Address

MAX_UNIX_PATH = 107
"""Bytes of a socket's path that Linux takes, without the final NUL."""

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\.?")
_NUMERIC_HOST = re.compile(r"(0[xX][0-9A-Fa-f]+|[0-9]+)(\.(0[xX][0-9A-Fa-f]+|[0-9]+)){0,3}\.?")
_PORT = re.compile(r"[0-9]{1,5}")
_PATH = re.compile(r"(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_MODEL = re.compile(r"[!-~]{1,200}")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_QUERY = re.compile(r"([A-Za-z0-9._~!$'()*,;:@/-]|%[0-9A-Fa-f]{2})*")
_ASCII_TEXT = re.compile(r"[\t -~]*")
_OPERATION = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?)?", re.ASCII)


# ------------------------------------------------------------------------------------------------------- addresses


def _read_address(text: str, reading: Reading) -> Address:
    if text.startswith("unix:"):
        return Address(path=_read_socket_path(text.removeprefix("unix:"), reading))
    if match := re.fullmatch(r"\[(.*)\]:(.*)", text):
        if not _is_ipv6(match[1]):
            raise ValueError("the part in [] is no IPv6 address")
        return Address(match[1], _read_port(match[2]))
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError("must be host:port, [v6]:port or unix:PATH; to listen everywhere, 0.0.0.0:PORT")
    if ":" in host:
        raise ValueError("an IPv6 address stands in brackets, such as [::1]:8080")
    if not _is_host(host):
        raise ValueError("the host is neither an IPv4 address nor a host name")
    return Address(host, _read_port(port))


def _read_socket_path(text: str, reading: Reading) -> str:
    path = str(reading.path(text))
    if not text or "\0" in path or len(path.encode()) > MAX_UNIX_PATH:
        raise ValueError(f"unix: takes the path of a socket, at most {MAX_UNIX_PATH} bytes with its folder")
    return path


def _read_port(text: str, minimum: int = 0) -> int:
    if not _PORT.fullmatch(text) or not minimum <= int(text) <= 65535:
        raise ValueError(f"the port must be a number from {minimum} to 65535")
    return int(text)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_host(text: str) -> bool:
    """A name of the DNS, or an IPv4 address in its usual form: `127.1` and `0x7f000001` are neither."""
    if not _HOST.fullmatch(text):
        return False
    if not _NUMERIC_HOST.fullmatch(text):
        return True
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


AddressText = Annotated[Address, Form("host:port, [v6]:port or unix:PATH", _read_address)]


# ------------------------------------------------------------------------------------------------------- base URLs


def _read_base_url(text: str, reading: Reading) -> BaseUrl:
    match = re.fullmatch(r"(https?)://([^/?#]*)([^?#]*)(.*)", text, re.IGNORECASE | re.DOTALL)
    if not match:
        raise ValueError("must begin with https:// (or http:// with allow_http: true)")
    scheme, authority, path, rest = match[1].lower(), match[2], match[3].rstrip("/"), match[4]
    if "@" in authority:
        raise ValueError("must not hold a user or password; they belong to credentials")
    if rest:
        raise ValueError("must not have a query or fragment; fixed query fields belong to the option query")
    if path and not _is_plain_path(path):
        raise ValueError("the path must be plain: no spaces, no //, no . or .. parts, % only before two hex digits")
    host, port = _host_and_port(authority, 443 if scheme == "https" else 80)
    _refuse_special(host)
    return BaseUrl(scheme, host, port, path)


def _is_plain_path(text: str) -> bool:
    return bool(_PATH.fullmatch(text)) and "//" not in text and not {".", ".."} & set(text.split("/"))


def _host_and_port(authority: str, default: int) -> tuple[str, int]:
    match = re.fullmatch(r"(\[.*\]|[^:]*)(?::(.*))?", authority)
    if not match or not match[1]:
        raise ValueError("the host is missing, or an IPv6 address stands without brackets")
    port = default if match[2] is None else _read_port(match[2], minimum=1)
    host = match[1].lower()
    if host.startswith("["):
        host = host[1:-1]
        if not _is_ipv6(host):
            raise ValueError("the part in [] is no IPv6 address")
    elif not _is_host(host):
        raise ValueError("the host is neither an IPv4 address nor a host name")
    return host, port


def read_host_and_port(text: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port` of a machine that may be connected to. Raises ValueError."""
    if not re.search(r":[0-9]+\Z", text):
        raise ValueError("needs a port, such as host:3128")
    host, port = _host_and_port(text, 0)
    _refuse_special(host)
    return host, port


def _refuse_special(host: str) -> None:
    """What no provider has: link-local addresses, where clouds keep their metadata, and addresses of no host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address.is_link_local or address.is_unspecified or address.is_multicast:
        raise ValueError("must not be a link-local, multicast or unspecified address")


def show_base_url(url: BaseUrl) -> str:
    """The URL as text."""
    return f"{url.scheme}://{url.authority}{url.path}"


BaseUrlText = Annotated[BaseUrl, Form("a URL", _read_base_url, show_base_url)]


# ----------------------------------------------------------------------------------------------------------- files


def _read_directory(text: str, reading: Reading) -> str:
    if not text or "\0" in text:
        raise ValueError("must be the path of a folder")
    path = reading.path(text)
    if path.exists() and not path.is_dir():
        raise ValueError("is there, but no folder")
    return str(path)


DirectoryText = Annotated[str, Form("a path, relative to this file", _read_directory)]


# ----------------------------------------------------------------------------------------------------------- names


def read_name(text: str) -> str:
    """A name of a channel, credential, key or owner. Raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError("must be 1 to 64 letters, digits or . _ - + @, the first a letter or digit")
    return text


def read_model_name(text: str) -> str:
    """A public model name, or a pattern with one `*`. Raises ValueError."""
    if not _MODEL.fullmatch(text) or {"?", "[", "]"} & set(text):
        raise ValueError("must be 1 to 200 visible ASCII characters without ? [ ]")
    if text.count("*") > 1:
        raise ValueError("must hold at most one *")
    return text


def _read_name(text: str, reading: Reading) -> str:
    return read_name(text)


def _read_allowed_model(text: str, reading: Reading) -> str:
    if not _MODEL.fullmatch(text) or {"?", "[", "]"} & set(text):
        raise ValueError("must be a model's name or a pattern with *, visible ASCII characters without ? [ ]")
    return text


def _read_upstream_model(text: str, reading: Reading) -> str:
    if not _MODEL.fullmatch(text) or "*" in text:
        raise ValueError("must be 1 to 200 visible ASCII characters without *")
    return text


Name = Annotated[str, Form("a name", _read_name)]
AllowedModel = Annotated[str, Form("a model's name or a pattern", _read_allowed_model)]
UpstreamModel = Annotated[str, Form("a model's name", _read_upstream_model)]


def _read_origin(text: str, reading: Reading) -> str:
    match = re.fullmatch(r"https?://([^/?#@]+)", text)
    if text != "*" and not match:
        raise ValueError("must be *, or scheme://host[:port] without a path, as browsers send it")
    if match:
        _host_and_port(match[1], 443)
    return text.lower()


def read_moment(text: str) -> float:
    """An ISO date or time, of UTC where it names no zone → seconds since the epoch. Raises ValueError."""
    try:
        if not _MOMENT.fullmatch(text):
            raise ValueError
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError("must be an ISO date or time, such as 2027-01-31 or 2027-01-31T18:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _read_moment(text: str, reading: Reading) -> float:
    return read_moment(text)


def _read_moment_or_never(text: str, reading: Reading) -> float | None:
    if text == "never":
        return None
    try:
        return read_moment(text)
    except ValueError as error:
        raise ValueError(str(error).replace("must be", "must be never or")) from None


def show_moment(moment: float | None) -> str:
    """The moment in UTC, in the ISO's form."""
    return "never" if moment is None else datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


Origin = Annotated[str, Form("an origin or *", _read_origin)]
MOMENT = Form("an ISO date or time (UTC where it names no zone)", _read_moment, show_moment)
Moment = Annotated[float | None, Form(f"never, or {MOMENT.name}", _read_moment_or_never, show_moment)]


# -------------------------------------------------------------------------------------------- fields of a request


def _read_auth(text: str, reading: Reading) -> Auth:
    form, colon, name = text.partition(":")
    if not colon and form in {"by_protocol", "bearer"}:
        return Auth(AuthForm(form))
    if form == "header" and _TOKEN.fullmatch(name):
        return Auth(AuthForm.HEADER, name.lower())
    if form == "query" and re.fullmatch(r"[A-Za-z0-9._~-]+", name):
        return Auth(AuthForm.QUERY, name)
    raise ValueError("must be by_protocol, bearer, header:NAME or query:NAME")


def show_auth(auth: Auth) -> str:
    """The text that reads as `auth`."""
    return f"{auth.form.value}:{auth.name}" if auth.name else auth.form.value


def _read_header_name(text: str, reading: Reading) -> str:
    if not _TOKEN.fullmatch(text):
        raise ValueError("a header's name must be letters, digits or !#$%&'*+.^_`|~-")
    return text.lower()


def _read_header_value(text: str, reading: Reading) -> str:
    if not _ASCII_TEXT.fullmatch(text):
        raise ValueError("a header's value must be ASCII without control characters (CR, LF, NUL)")
    return text.strip()


def _read_query_value(text: str, reading: Reading) -> str:
    if not _QUERY.fullmatch(text):
        raise ValueError("must be as it stands in a URL: what is no letter, digit or ._~!$'()*,;:@/- as %XX")
    return text


def _read_query_name(text: str, reading: Reading) -> str:
    if not text:
        raise ValueError("a query field needs a name")
    return _read_query_value(text, reading)


def _read_operation(text: str, reading: Reading) -> str:
    if not _OPERATION.fullmatch(text):
        raise ValueError("must be an operation's name, such as chat.completions")
    return text


def _read_path(text: str, reading: Reading) -> str:
    if not _is_plain_path(text.replace("{model}", "model")):
        raise ValueError("must be a path that begins with / and has no query, no //, no . or .. parts")
    return text


def _read_label(text: str, reading: Reading) -> str:
    if not text.isprintable() or not 1 <= len(text) <= 200 or text != text.strip():
        raise ValueError("a label must be 1 to 200 printable characters, without space around them")
    return text


def _read_comment(text: str, reading: Reading) -> str:
    if not re.fullmatch(r"[!-~][ -~]{0,199}", text):
        raise ValueError("must be 1 to 200 visible ASCII characters on one line")
    return text


AuthText = Annotated[Auth, Form("by_protocol, bearer, header:NAME or query:NAME", _read_auth, show_auth)]
HeaderName = Annotated[str, Form("a header's name", _read_header_name)]
HeaderValue = Annotated[str, Form("text", _read_header_value)]
QueryName = Annotated[str, Form("a field's name", _read_query_name)]
QueryValue = Annotated[str, Form("text as in a URL", _read_query_value)]
Operation = Annotated[str, Form("an operation", _read_operation)]
PathText = Annotated[str, Form("a path", _read_path)]
Comment = Annotated[str, Form("text", _read_comment)]
LabelText = Annotated[str, Form("text", _read_label)]
