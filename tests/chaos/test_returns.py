"""What is read from a supervisor's lines."""

from tests.chaos.returns import Return, returns


def test_a_death_its_rest_and_its_successor_belong_together() -> None:
    said = [
        (1.0, "worker 0 (pid 10) serves"),
        (1.1, "worker 1 (pid 11) serves"),
        (2.0, "worker 0 (pid 10) ended (SIGKILL)"),
        (2.1, "worker 1 (pid 11) ended (SIGKILL)"),
        (2.1, "worker 1 is started again in 0.4 s: it ends soon after each start"),
        (2.5, "worker 0 (pid 12) serves"),
        (3.0, "worker 1 (pid 13) serves"),
        (4.0, "worker 1 (pid 13) ended (SIGKILL)"),
        (4.5, "worker 1 (pid 14) serves"),
    ]
    assert returns(said) == [
        Return(10, 12, 2.0, 0.0, 2.5),
        Return(11, 13, 2.1, 0.4, 3.0),
        Return(13, 14, 4.0, 0.0, 4.5),
    ]


def test_what_has_not_come_back_is_no_return() -> None:
    said = [
        (1.0, "worker 0 (pid 10) ended (SIGKILL)"),
        (1.2, "worker 0 (pid 11) ended (SIGKILL)"),
        (1.9, "worker 0 (pid 12) serves"),
        (2.0, "worker 0 (pid 12) ended (exit code 1)"),
        (2.0, "control process (pid 9) ended (SIGKILL)"),
        (2.5, "control process (pid 13) serves"),
        (3.0, "worker 0 (pid 14) ended (SIGKILL)"),
    ]
    assert returns(said) == [Return(11, 12, 1.2, 0.0, 1.9)]
