"""Real processes: a supervisor, a control process and two workers, and what becomes of streams when one dies."""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.supervisor.seat import SHORT_LIVES
from tests.stand import procfs
from tests.stand.books import ledger_entries
from tests.stand.client import Client, End
from tests.stand.gateway import GatewayProcess
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand
from tests.stand.valkey import Valkey
from tests.stand.waiting import until
from tests.stand.wire import CHAT, TEXT, chat, error_in, request, texts

pytestmark = pytest.mark.skipif(not procfs.IS_THERE, reason="processes are looked at through /proc")

BACK_S = 2.0
"""So soon a killed worker has to have a successor that serves."""
SLOW = {"events": CHAT, "gap": 0.4}
ENDLESS = {"text": "word ", "repeat": 100_000, "gap": 0.02}
READY = request(method="GET", path="/readyz", key=None)
NEW_KEY = "sk-hr-new-0123456789abcdef"


def configured(valkey: Valkey, notice: str = "0s") -> str:
    """Two workers, and the Valkey that they need between them."""
    text = CONFIG.replace("drain_notice: 0s", f"drain_notice: {notice}\n  workers: 2")
    return text.replace("directory: $STATE", f"directory: $STATE, shared: {valkey.url}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, valkey_process: Valkey) -> Iterator[Stand]:
    """Two workers. Its processes come and go in the tests; it serves on through all of them."""
    valkey_process.ensure()
    with Stand(tmp_path_factory.mktemp("processes"), configured(valkey_process, notice="1s"), process=True) as one:
        yield one


@pytest.fixture
def pair(shared: Stand) -> Stand:
    """The shared one, all of its processes at rest."""
    settled(shared)
    return shared


def settled(stand: Stand) -> None:
    """All three children serve, and no other is left."""
    gateway = process(stand)
    until(lambda: sorted(procfs.children(gateway.pid)) == sorted(family(stand)), "three children")


def process(stand: Stand) -> GatewayProcess:
    assert isinstance(stand.gateway, GatewayProcess)
    return stand.gateway


def family(stand: Stand) -> list[int]:
    return [process(stand).child(title) for title in ("worker 0", "worker 1", "control process")]


def workers(stand: Stand) -> list[int]:
    return family(stand)[:2]


def connected_to(stand: Stand, pid: int) -> Client:
    """A connection that this worker serves: the kernel spreads them, so some are made in vain."""
    for _ in range(200):
        client = stand.connect()
        client.send(READY)
        client.rest()
        if procfs.server_of(client.local_port, stand.port, workers(stand)) == pid:
            return client
        client.close()
    raise AssertionError(f"no connection of 200 came to worker {pid}")


def begin(client: Client, model: str) -> None:
    """A stream whose first event is there."""
    client.send(request(chat(model)))
    client.head()
    client.read(until=b"data: ")


def kill(pid: int) -> None:
    """kill -9 of one of the gateway's processes."""
    os.kill(pid, signal.SIGKILL)


# ---- serving


def test_both_workers_serve_on_one_port_that_the_system_chose(pair: Stand) -> None:
    for pid in workers(pair):
        with connected_to(pair, pid) as client:
            model = pair.model("one", {"events": CHAT})
            client.send(request(chat(model)))
            client.head()
            assert texts(client.rest().body) == TEXT


def test_children_hold_what_they_need_and_nothing_more(pair: Stand) -> None:
    """No lock, no other slot's socket, no other child's pair: only so the end of the supervisor is seen by each."""
    supervisor = procfs.descriptors(process(pair).pid)
    lock = str(pair.state / "lock")
    assert lock in supervisor.values()
    held = [set(procfs.descriptors(pid).values()) for pid in family(pair)]
    sockets = [{one for one in found if one.startswith("socket:")} & set(supervisor.values()) for found in held]
    assert [len(one) for one in sockets] == [1, 1, 1], "a worker's listener; the control process's link"
    assert len(set.union(*sockets)) == 3
    assert not [found for found in held if lock in found]


def test_nobody_writes_to_the_journal_of_another(pair: Stand) -> None:
    held = [{one for one in procfs.descriptors(pid).values() if one.endswith(".segment")} for pid in workers(pair)]
    assert all(held)
    assert not held[0] & held[1]


# ---- kill -9


def test_a_killed_worker_is_back_soon_and_the_other_one_noticed_nothing(pair: Stand) -> None:
    victim, other = workers(pair)
    model = pair.model("one", SLOW)
    with connected_to(pair, other) as spared, connected_to(pair, victim) as cut:
        begin(spared, model)
        begin(cut, pair.model("one", ENDLESS))
        began = time.monotonic()
        kill(victim)
        until(lambda: workers(pair)[0] != victim, "a successor")
        assert time.monotonic() - began < BACK_S
        reply = cut.rest()
        assert reply.end in (End.CLOSED, End.RESET), "no client takes it for an end"
        lost = pair.entry(id=reply.id)
        assert (lost.end, lost.reason, lost.source) == ("interrupted", "worker_lost", "gateway")
        reply = spared.rest()
        assert (reply.end, texts(reply.body)) == (End.FRAMED, TEXT)
    assert workers(pair)[1] == other
    assert not procfs.state(victim), "no zombie"
    assert pair.entry(model).end == "completed"


def test_what_waits_for_a_dead_worker_is_served_by_its_successor(pair: Stand) -> None:
    """Connections that were made while the slot had no worker lose nothing."""
    victim = workers(pair)[0]
    kill(victim)
    clients = [pair.connect() for _ in range(40)]
    models = [pair.model("one", {"events": CHAT}) for _ in clients]
    for client, model in zip(clients, models, strict=True):
        client.send(request(chat(model)))
    for client in clients:
        assert texts(client.rest().body) == TEXT
    until(lambda: workers(pair)[0] != victim, "a successor")
    served = [procfs.server_of(client.local_port, pair.port, workers(pair)) for client in clients]
    assert set(served) == set(workers(pair))
    for client in clients:
        client.close()


def test_a_killed_control_process_is_back_and_no_worker_noticed(pair: Stand) -> None:
    *before, control = family(pair)
    model = pair.model("one", SLOW)
    with pair.connect() as client:
        begin(client, model)
        kill(control)
        assert texts(pair.ask(chat(pair.model("one", {"events": CHAT}))).body) == TEXT
        until(lambda: family(pair)[2] != control, "a successor")
        assert texts(client.rest().body) == TEXT
    assert workers(pair) == before


def test_a_child_that_dies_again_and_again_is_started_after_longer_and_longer_rests(pair: Stand) -> None:
    gateway = process(pair)
    heard = len(gateway.said)
    for _ in range(SHORT_LIVES + 4):  # the first may have lived long
        victim = workers(pair)[1]
        kill(victim)
        until(lambda gone=victim: workers(pair)[1] != gone, "a successor")  # type: ignore[misc]
    rests = re.findall(r"worker 1 is started again in ([\d.]+) s", "".join(gateway.said[heard:]))
    assert [float(rest) for rest in rests[:3]] == [float(rests[0]) * factor for factor in (1, 2, 4)]
    assert texts(pair.ask(chat(pair.model("one", {"events": CHAT}))).body) == TEXT


# ---- reload


def rewrite(stand: Stand, text: str) -> None:
    """Another file, put in its place as a whole."""
    draft = stand.config.with_suffix(".new")
    draft.write_text(text)
    draft.chmod(0o600)
    draft.replace(stand.config)


def status(stand: Stand, key: str) -> int:
    """What a key is answered with, through either worker."""
    found = set()
    for pid in workers(stand):
        with connected_to(stand, pid) as client:
            client.send(request(method="GET", path="/v1/models", key=key))
            found.add(client.head().status)
            client.rest()
    return found.pop() if len(found) == 1 else 0


@pytest.mark.parametrize("how", ["SIGHUP", "polling"])
def test_a_reload_gives_and_takes_keys_and_touches_no_stream(pair: Stand, how: str) -> None:
    gateway, before = process(pair), pair.config.read_text()
    dev = re.search(r"\{name: dev, secret: (\S+)\}", before)
    assert dev
    model = pair.model("one", SLOW)
    heard = len(gateway.said)
    with pair.connect() as client:
        begin(client, model)
        rewrite(pair, before.replace(dev[0], f"{{name: fresh, secret: {NEW_KEY}}}"))
        if how == "SIGHUP":
            gateway.signal(signal.SIGHUP)
        began = time.monotonic()
        until(lambda: status(pair, NEW_KEY) == 200, "the new key")
        assert time.monotonic() - began < (1.0 if how == "SIGHUP" else 5.0)
        assert status(pair, dev[1]) == 401
        assert texts(client.rest().body) == TEXT, "its key was taken away meanwhile"
        assert gateway.has_said("key fresh: added", heard)
        assert gateway.has_said("key dev: removed", heard)
    rewrite(pair, before)
    gateway.signal(signal.SIGHUP)
    until(lambda: status(pair, dev[1]) == 200, "the old key")
    assert status(pair, NEW_KEY) == 401


def test_a_bad_file_changes_nothing_and_a_worker_started_then_serves_as_before(pair: Stand) -> None:
    gateway, before = process(pair), pair.config.read_text()
    heard = len(gateway.said)
    rewrite(pair, "keys: [{name: no secret}]\n")
    gateway.signal(signal.SIGHUP)
    until(lambda: gateway.has_said("nothing was changed"), "the word on it")
    for victim in (workers(pair)[0], family(pair)[2]):
        kill(victim)
        until(lambda gone=victim: gone not in family(pair), "a successor")  # type: ignore[misc]
    assert texts(pair.ask(chat(pair.model("one", {"events": CHAT}))).body) == TEXT
    rewrite(pair, before)
    gateway.signal(signal.SIGHUP)
    until(lambda: gateway.has_said("good again", heard), "a good file")


def test_what_needs_a_restart_is_said(pair: Stand) -> None:
    gateway, before = process(pair), pair.config.read_text()
    rewrite(pair, before.replace("drain: 5s", "drain: 6s"))
    gateway.signal(signal.SIGHUP)
    until(lambda: gateway.has_said("server.drain: 5s → 6s; takes effect at the next start"), "the word on it")
    rewrite(pair, before)
    gateway.signal(signal.SIGHUP)


# ---- roll


def test_a_roll_replaces_all_workers_and_lets_streams_go_on_where_they_are(pair: Stand) -> None:
    gateway, before = process(pair), workers(pair)
    models = [pair.model("one", ENDLESS) for _ in before]
    clients = [connected_to(pair, pid) for pid in before]
    for client, model in zip(clients, models, strict=True):
        begin(client, model)
    heard = len(gateway.said)
    gateway.signal(signal.SIGUSR2)
    until(lambda: gateway.has_said("the workers are rolled", heard), "the roll")
    assert not set(workers(pair)) & set(before)
    for pid in workers(pair):
        with connected_to(pair, pid) as client:
            client.send(request(chat(pair.model("one", {"events": CHAT}))))
            client.head()
            assert texts(client.rest().body) == TEXT
    for client, pid in zip(clients, before, strict=True):
        assert procfs.server_of(client.local_port, pair.port, before) == pid
        words = client.read_for(0.0).body.count(b"word")
        until(lambda one=client, had=words: one.read_for(0.05).body.count(b"word") > had, "more of the stream")  # type: ignore[misc]
        client.close()
    until(lambda: not any(procfs.state(pid) for pid in before), "the end of the old ones")
    assert [pair.entry(model).end for model in models] == ["client_gone"] * 2


def test_no_request_is_lost_in_a_roll(pair: Stand) -> None:
    """New connections and kept-alive ones, one request after the other, all the time. A kept-alive one is told with a
    reply that it was the last."""
    gateway, before = process(pair), workers(pair)
    model = pair.model("one", {"events": CHAT})
    kept = {pid: connected_to(pair, pid) for pid in before}
    gateway.signal(signal.SIGUSR2)
    for _ in range(1000):
        assert texts(pair.ask(chat(model)).body) == TEXT
        for pid, client in list(kept.items()):
            client.send(request(method="GET", path="/v1/models"))
            reply = client.head()
            assert (client.rest().end, reply.status) == (End.FRAMED, 200)
            if reply.header("connection") == "close":
                kept.pop(pid).close()
        if not kept:
            break
    assert not kept
    until(lambda: not set(workers(pair)) & set(before), "the word that both successors serve")


def test_a_roll_waits_for_the_control_process(pair: Stand) -> None:
    gateway, before = process(pair), family(pair)
    heard = len(gateway.said)
    kill(before[2])
    until(lambda: not procfs.state(before[2]), "its end")
    gateway.signal(signal.SIGUSR2)
    until(lambda: gateway.has_said("the workers are rolled", heard), "the roll")
    until(lambda: not set(family(pair)) & set(before), "new processes")
    said = [line.strip() for line in gateway.said[heard:]]
    waits = said.index("the roll waits for the control process")
    back = next(i for i, line in enumerate(said) if re.fullmatch(r"control process \(pid \d+\) serves", line))
    replaced = next(i for i, line in enumerate(said) if "is replaced" in line)
    assert waits < back < replaced


# ---- the end of the supervisor, and starts


@pytest.fixture
def alone(tmp_path: Path, valkey: Valkey) -> Iterator[Stand]:
    """Two workers, for one test that ends them."""
    with Stand(tmp_path, configured(valkey), process=True) as one:
        yield one


def gone(pids: list[int], wait_s: float = 10.0) -> None:
    until(lambda: not any(map(procfs.is_alive, pids)), f"the end of {pids}", wait_s)


def test_a_killed_supervisor_takes_nothing_with_it_and_the_next_start_has_its_addresses(alone: Stand) -> None:
    gateway, orphans = process(alone), family(alone)
    config = alone.config.read_text()
    alone.config.write_text(config.replace("127.0.0.1:0", f"127.0.0.1:{alone.port}"))
    model = alone.model("one", SLOW)
    with alone.connect() as client:
        begin(client, model)
        kill(gateway.pid)
        gateway.exit_code()
        with GatewayProcess(alone.config) as second:
            assert second.port == alone.port
            assert texts(alone.ask(chat(alone.model("one", {"events": CHAT}))).body) == TEXT
            assert texts(client.rest().body) == TEXT, "it was served by an orphan all the while"
            assert client.ended() is End.CLOSED
            gone(orphans)
            second.signal(signal.SIGTERM)
            assert second.exit_code() == 0
    assert alone.entry(model).end == "completed"
    alone.audit()


def test_orphans_without_streams_end_at_once(alone: Stand) -> None:
    orphans = family(alone)
    with alone.connect() as idle:
        kill(process(alone).pid)
        gone(orphans)
        assert idle.ended() is End.CLOSED


def test_sigterm_lets_streams_of_all_workers_end_and_leaves_no_process(alone: Stand) -> None:
    gateway, pids = process(alone), family(alone)
    models = [alone.model("one", SLOW) for _ in workers(alone)]
    clients = [connected_to(alone, pid) for pid in workers(alone)]
    for client, model in zip(clients, models, strict=True):
        begin(client, model)
    gateway.signal(signal.SIGTERM)
    for client in clients:
        assert texts(client.rest().body) == TEXT
        client.close()
    assert gateway.exit_code() == 0
    assert not any(map(procfs.state, pids)), "neither processes nor zombies"
    assert not list((alone.state / "journal").glob("*/*/*/*")), "all of it is in the ledger"
    assert {entry.model: entry.end for entry in ledger_entries(alone.state)} == dict.fromkeys(models, "completed")
    logged = [json.loads(line) for line in gateway.printed if line.startswith("{")]
    assert sorted(line["model"] for line in logged) == sorted(models)
    order = [next(i for i, line in enumerate(gateway.said) if f"(pid {pid}) has drained" in line) for pid in pids]
    assert order[2] == max(order), "the control process last: it takes the others' records"
    alone.audit()


def test_a_second_sigterm_tells_every_client_and_leaves_no_process(alone: Stand) -> None:
    gateway, pids = process(alone), family(alone)
    model = alone.model("one", ENDLESS)
    clients = [connected_to(alone, pid) for pid in workers(alone)]
    for client in clients:
        begin(client, model)
    gateway.signal(signal.SIGTERM)
    until(lambda: gateway.has_said("draining"), "the drain")
    gateway.signal(signal.SIGTERM)
    assert gateway.exit_code(3) == 1
    for client in clients:
        reply = client.rest()
        assert (reply.end, error_in(reply.body)["code"]) == (End.FRAMED, "stopped")
        client.close()
    assert not any(map(procfs.state, pids))
    assert {entry.end for entry in alone.entries(model, count=2)} == {"stopped"}


def test_sigterm_to_a_worker_alone_drains_it_and_another_takes_its_place(alone: Stand) -> None:
    victim = workers(alone)[0]
    model = alone.model("one", SLOW)
    with connected_to(alone, victim) as client:
        begin(client, model)
        os.kill(victim, signal.SIGTERM)
        assert texts(client.rest().body) == TEXT
    until(lambda: workers(alone)[0] != victim, "a successor")
    for pid in family(alone):
        os.kill(pid, signal.SIGHUP)  # such as by name, to all at once: no worker dies of it
    assert texts(alone.ask(chat(alone.model("one", {"events": CHAT}))).body) == TEXT


def test_a_start_with_a_damaged_snapshot_or_of_another_secret(alone: Stand) -> None:
    """It is said, a new one is written, and a worker that starts meanwhile waits for the control process."""
    gateway, (victim, other, control) = process(alone), family(alone)
    (alone.state / "snapshot").write_bytes(b"no snapshot")
    os.kill(control, signal.SIGSTOP)
    try:
        kill(victim)
        until(lambda: gateway.has_said("waiting for the control process"), "the word on it")
        assert gateway.has_said("is too short to be whole")
    finally:
        os.kill(control, signal.SIGCONT)
    until(lambda: workers(alone)[0] != victim, "a successor")
    assert workers(alone)[1] == other
    kill(control)
    until(lambda: family(alone)[2] != control, "a control process")
    assert (alone.state / "snapshot").stat().st_size > 100


def test_a_restarted_worker_does_not_wait_for_the_control_process(alone: Stand) -> None:
    victim, _, control = family(alone)
    os.kill(control, signal.SIGSTOP)
    try:
        kill(victim)
        until(lambda: workers(alone)[0] != victim, "a successor")
        with connected_to(alone, workers(alone)[0]) as client:
            client.send(request(chat(alone.model("one", {"events": CHAT}))))
            client.head()
            assert texts(client.rest().body) == TEXT
    finally:
        os.kill(control, signal.SIGCONT)


def failed_start(config: Path) -> str:
    """What a start says that must fail with exit code 1."""
    with pytest.raises(AssertionError, match="did not start") as error, GatewayProcess(config):
        pass
    return str(error.value)


def test_a_second_gateway_in_one_directory_is_refused(alone: Stand) -> None:
    said = failed_start(alone.config)
    assert f"another headrace (pid {process(alone).pid}) serves from {alone.state}" in said
    assert texts(alone.ask(chat(alone.model("one", {"events": CHAT}))).body) == TEXT


@pytest.mark.parametrize("shared_port", [False, True], ids=["plain", "SO_REUSEPORT"])
def test_a_foreign_listener_is_found_whatever_it_shares(tmp_path: Path, valkey: Valkey, shared_port: bool) -> None:
    with socket.socket() as foreign:
        foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared_port)
        foreign.bind(("127.0.0.1", 0))
        foreign.listen()
        address = f"127.0.0.1:{foreign.getsockname()[1]}"
        config = tmp_path / "headrace.yaml"
        state = f"{{directory: state, shared: '{valkey.url}'}}"
        config.write_text(f"server: {{listen: {address}, workers: 2}}\nstate: {state}\n")
        said = failed_start(config)
        assert f"cannot listen on {address}: address in use" in said
        foreign.setblocking(False)
        with pytest.raises(BlockingIOError):
            foreign.accept()


def test_a_state_directory_with_a_path_too_long_for_a_socket(tmp_path: Path, valkey: Valkey) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * 4)
    folder.mkdir(parents=True)
    assert len(str(folder)) > 120
    with Stand(folder, configured(valkey), process=True) as stand:
        rewrite(
            stand,
            stand.config.read_text().replace("{name: dev,", f"{{name: fresh, secret: {NEW_KEY}}}\n  - {{name: dev,"),
        )
        process(stand).signal(signal.SIGHUP)
        until(lambda: status(stand, NEW_KEY) == 200, "the new key, over the link")
