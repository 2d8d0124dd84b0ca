"""The snapshot: all of a catalogue comes back from the disk, and its version names its content."""

from pathlib import Path

from headrace.link.snapshot import SNAPSHOT_FILE, Kept, snapshot_of
from headrace.model.catalogue import CatalogueParts, ObjectKind, StoredObject
from headrace.model.channel import BaseUrl, Channel, Credential, Model, Route
from headrace.model.key import Key
from headrace.model.limits import Budget, Limits
from headrace.model.owner import Owner
from headrace.model.settings import StreamSettings
from headrace.model.wire import WireProtocol

SECRET = bytes(range(32))
CHANNEL = Channel(
    "up",
    BaseUrl("https", "example.org", 443, "/v1"),
    frozenset({WireProtocol.CHAT, WireProtocol.RESPONSES}),
    (Credential("main", "sk-upstream"),),
)
KEY = Key("dev", bytes(32), owner="team", stop=True, limits=Limits(concurrent=3), budget=Budget(7))
PARTS = CatalogueParts((CHANNEL,), (Model("m", (Route("up"),)),), (KEY,), (Owner("team", budget=Budget(9)),))
OBJECTS = (StoredObject(ObjectKind.KEY, "other", '{"secret": "sk-hr-other"}'),)


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    kept = Kept(snapshot=snapshot_of(StreamSettings(), PARTS), objects=OBJECTS)
    SNAPSHOT_FILE.write(tmp_path, SECRET, kept)
    assert SNAPSHOT_FILE.read(tmp_path, SECRET) == kept


def test_the_same_content_keeps_its_version_and_another_has_another(tmp_path: Path) -> None:
    SNAPSHOT_FILE.write(tmp_path, SECRET, Kept(snapshot=snapshot_of(StreamSettings(), PARTS)))
    kept = SNAPSHOT_FILE.read(tmp_path, SECRET)
    assert kept is not None
    assert snapshot_of(StreamSettings(), PARTS, kept.snapshot) is kept.snapshot
    assert snapshot_of(StreamSettings(total=1.0), PARTS, kept.snapshot).version != kept.snapshot.version
    assert snapshot_of(StreamSettings(), CatalogueParts(), kept.snapshot).version != kept.snapshot.version
