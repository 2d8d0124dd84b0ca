"""A web page of another origin, in a real browser: examples/web streams, and says why where it may not."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.line.pages import CHROMIUM, opened, served
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand
from tests.stand.wire import BRISK, KEY

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

WEB = Path(__file__).parents[2] / "examples" / "web"
NARROWED = "sk-hr-narrowed-0123456789abcdef"
ELSEWHERE = "sk-hr-elsewhere-0123456789abcdef"
WORDS = ["one ", "two ", "three ", "four ", "五"]
both = pytest.mark.parametrize("protocol", ["chat", "responses"])
WATCH = """() => {
    window.steps = [];
    const answer = document.getElementById("answer");
    new MutationObserver(() => steps.push(answer.textContent)).observe(answer, { childList: true });
}"""


@dataclass(frozen=True)
class Site:
    """A gateway, and the origins of the page: one that it lists, and one that it does not."""

    stand: Stand
    listed: str
    unlisted: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(WEB) as listed, served(WEB) as unlisted:
        keys = (
            f"  - {{name: narrowed, secret: {NARROWED}, origins: ['{listed}'], models: ['one-*']}}\n"
            f"  - {{name: elsewhere, secret: {ELSEWHERE}, origins: ['https://example.com']}}\n"
        )
        text = CONFIG.replace("server:\n", f"server:\n  cors: {{origins: ['{listed}']}}\n", 1) + keys
        text = text.replace("protocols: [chat]", "protocols: [chat, responses]")
        with Stand(tmp_path_factory.mktemp("browser"), text) as stand:
            yield Site(stand, listed, unlisted)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as one:
        yield one


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page, in which no script fails."""
    failed: list[str] = []
    with browser.new_context() as context:
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("pageerror", lambda error: failed.append(str(error)))
        yield page
        assert not failed


def ask(page: Page, site: Site, model: str, protocol: str = "chat", key: str = KEY, origin: str = "") -> None:
    """Fill the form as a person would, and send it."""
    page.goto(origin or site.listed)
    page.get_by_label("Base URL").fill(site.stand.url)
    page.get_by_label("Key").fill(key)
    page.get_by_label("Model").fill(model)
    page.get_by_label("Protocol").select_option(protocol)
    page.evaluate(WATCH)
    page.get_by_role("button", name="Send").click()


def ended(page: Page) -> tuple[str, str, str]:
    """Answer, error and status once it is over."""
    expect(page.get_by_role("button", name="Send")).to_be_enabled(timeout=10_000)
    return tuple(page.locator(f"#{name}").inner_text() for name in ("answer", "error", "status"))  # type: ignore[return-value]


@both
def test_an_answer_grows_as_it_comes(page: Page, site: Site, protocol: str) -> None:
    """Preflight, head, keepalives in between, and the gateway's id, from another origin."""
    model = site.stand.model("one", {"text": WORDS, "gap": 0.15})
    ask(page, site, model, protocol, BRISK)
    answer, error, status = ended(page)
    assert (answer, error) == ("".join(WORDS), "")
    entry = site.stand.entry(model)
    assert status == f"Complete. Request {entry.id}"
    assert entry.wire.keepalives
    steps = page.evaluate("steps")
    assert len(steps) > 2, "it came in one piece"
    assert all(later.startswith(earlier) and later != earlier for earlier, later in pairwise(steps))


@both
@pytest.mark.parametrize("how", ["rst", "clean"])
def test_a_cut_is_an_error(page: Page, site: Site, protocol: str, how: str) -> None:
    model = site.stand.model("one", {"text": WORDS, "cut": {"after_events": 6, "how": how}})
    ask(page, site, model, protocol)
    answer, error, status = ended(page)
    assert "".join(WORDS).startswith(answer) and answer.startswith("one two")
    assert error.startswith("The answer is not whole: The upstream's stream broke off before its end.")
    entry = site.stand.entry(model)
    assert (entry.end, status) == ("interrupted", f"Request {entry.id}")


@both
def test_a_failure_behind_an_early_head_is_an_error(page: Page, site: Site, protocol: str) -> None:
    model = site.stand.model("early-one", {"status": 503, "head_delay": 0.35})
    ask(page, site, model, protocol)
    answer, error, _ = ended(page)
    assert answer == ""
    assert error.startswith("The answer is not whole: ")
    assert site.stand.entry(model).early_open


def test_stopping_closes_the_upstream(page: Page, site: Site) -> None:
    """Case B058."""
    model = site.stand.model("one", {"text": "word ", "repeat": 2000, "gap": 0.02})
    ask(page, site, model)
    expect(page.locator("#answer")).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click()
    _, error, status = ended(page)
    assert error == ""
    assert status.startswith("Stopped. Request hr_")
    assert site.stand.entry(model).end == "client_gone"
    assert site.stand.calls(model)[0].closed_early


def test_an_origin_that_is_not_listed_is_refused(page: Page, site: Site) -> None:
    """The preflight gives no permission, so the request itself is never sent."""
    model = site.stand.model("one", {"text": WORDS})
    ask(page, site, model, origin=site.unlisted)
    answer, error, _ = ended(page)
    assert answer == ""
    assert f"gives no reply to pages of {site.unlisted}" in error
    assert not site.stand.calls(model)


def test_a_key_of_other_origins_shows_nothing(page: Page, site: Site) -> None:
    """A preflight has no key, so the request itself is sent."""
    model = site.stand.model("one", {"text": WORDS})
    ask(page, site, model, key=ELSEWHERE)
    answer, error, _ = ended(page)
    assert answer == ""
    assert f"gives no reply to pages of {site.listed}" in error
    assert site.stand.calls(model)


def test_a_narrowed_key_does_what_it_may(page: Page, site: Site) -> None:
    model = site.stand.model("one", {"text": WORDS})
    ask(page, site, model, key=NARROWED)
    assert ended(page)[:2] == ("".join(WORDS), "")
    ask(page, site, site.stand.model("twice", {"text": WORDS}), key=NARROWED)
    _, error, status = ended(page)
    assert error.startswith("The key was refused: ")
    assert status.startswith("Request hr_")


def test_a_key_that_is_not_known_is_said_to_be(page: Page, site: Site) -> None:
    ask(page, site, site.stand.model("one", {"text": WORDS}), key="sk-hr-none")
    _, error, status = ended(page)
    assert error.startswith("The key was refused: ")
    assert status.startswith("Request hr_")


def test_a_gateway_that_is_not_there_is_said_to_be(page: Page, site: Site) -> None:
    page.goto(site.listed)
    page.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Send").click()
    assert ended(page)[1] == "Nothing answers at http://127.0.0.1:9/v1."
