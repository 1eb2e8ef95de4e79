"""Reports in a real browser: nothing leaves the page, every part opens, phone and print fit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import themis

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright (dependency group browser)"
)
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
EVIL = (
    '"><img src=http://evil.example/x onerror=alert(1)><script>alert(2)</script>\x00\x1b[31m\u202e'
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser is installed: looked for {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as session:
        opened = session.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def workload() -> themis.Workload:
    """The demo with a hostile user and app."""
    demo = themis.generate("demo", seed=0, apps=8)
    first = demo.apps["app_id"][0]
    apps, jobs = (
        frame.with_columns(pl.col("app_id").replace(first, EVIL))
        for frame in (demo.apps, demo.jobs)
    )
    return replace(demo, apps=apps.with_columns(user=pl.lit(EVIL)), jobs=jobs)


@pytest.fixture(scope="module")
def comparison(workload: themis.Workload, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cluster = themis.Cluster.parse("2x(2x4)")
    compared = themis.compare(
        workload, cluster, policies=["themis", "fifo"], seeds=[0, 1], horizon_s=40_000.0
    )
    return compared.write(tmp_path_factory.mktemp("compared") / "out") / "report.html"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from themis.report import write_report  # noqa: PLC0415 - charts load slowly

    place = tmp_path_factory.mktemp("sweep")
    swept = themis.sweep(
        {"cluster": {"spec": "2x(2x4)"}, "workload": {"generate": "demo", "params": {"apps": 5}}},
        axes={"fairness_knob": [0, 0.5, 0.8], "lease_s": [300, 600, 900, 1200]},
        workers=1,
    )
    return write_report(swept.comparison(), place / "sweep.html")


class Visit:
    """An open page, and all that it asked for or complained about."""

    def __init__(self, browser: Browser, path: Path, width: int) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": width, "height": 800})
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.goto(path.as_uri())

    def _dialog(self, dialog: Any) -> None:  # noqa: ANN401 - playwright's
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def open_all(self) -> int:
        """Click every summary; return how many there are."""
        summaries = self.page.locator("summary")
        count = int(summaries.count())
        for at in range(count):
            summaries.nth(at).click()
        return count

    def fits(self) -> bool:
        script = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        return bool(self.page.evaluate(script))


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("name", ["comparison", "sweep"])
def test_a_report_opens_fits_and_asks_for_nothing(
    browser: Browser, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(name)
    visit = Visit(browser, path, width)
    assert visit.fits()
    parts = visit.open_all()
    assert parts >= 3
    assert visit.page.locator("details[open]").count() == parts
    assert all(table.is_visible() for table in visit.page.locator("table").all())
    assert all(figure.is_visible() for figure in visit.page.locator("figure svg").all())
    assert visit.fits()
    assert visit.requests == [path.as_uri()]
    assert visit.complaints == []
    visit.page.close()


def test_a_report_prints(browser: Browser, comparison: Path) -> None:
    visit = Visit(browser, comparison, 800)
    visit.page.emulate_media(media="print")
    assert visit.fits()
    assert visit.page.pdf(format="A4").startswith(b"%PDF")
    assert visit.complaints == []
    visit.page.close()


def test_names_are_text_and_their_control_characters_are_marked(
    browser: Browser, comparison: Path
) -> None:
    visit = Visit(browser, comparison, 1200)
    visit.open_all()
    text = visit.page.inner_text("body")
    assert "<script>alert(2)</script>" in text
    assert visit.page.locator("script, img").count() == 0
    assert not {"\x00", "\x1b", "\u202e"} & set(text)
    assert "\N{REPLACEMENT CHARACTER}[31m" in text
    visit.page.close()
