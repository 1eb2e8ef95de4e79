from __future__ import annotations

import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from themis.comparison.comparison import Comparison
from themis.errors import ThemisError
from themis.metrics.catalogue import Unit
from themis.metrics.occupancy import occupancy
from themis.policies.catalogue import POLICIES
from themis.report import distributions, figures, write_report
from themis.report.many import drawn_part
from themis.report.palette import policy_colours
from themis.report.wording import worded
from themis.results.digest import app_rows, digest
from themis.results.result import Result

if TYPE_CHECKING:
    from tests.unit.conftest import MakeResult, MakeTable

EVIL = '"><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>'
NAMES = ["rho", "completion", "gains", "utilisation", "contention", "gpu_time", "placement"]
AUCTIONS = ["offers", "payments", "gaps"]


class Page(HTMLParser):
    """Tags with their attributes, ids, and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def compared(results: list[Result]) -> Comparison:
    return Comparison(
        runs=[digest(result) for result in results],
        apps=pl.concat([app_rows(result, result.policy) for result in results]),
        results={(result.policy, result.seed): result for result in results},
    )


@pytest.fixture
def comparison(make_result: MakeResult) -> Comparison:
    return compared(
        [
            make_result(300, "themis"),
            make_result(300, "fifo", auctions=False),
            make_result(300, "max_rho", auctions=False),
        ]
    )


def page_of(subject: Comparison | Result | list[Result], tmp_path: Path) -> tuple[str, Page]:
    html = write_report(subject, tmp_path / "report.html").read_text(encoding="utf-8")
    return html, Page(html)


def test_the_page_is_one_file_without_scripts_or_anything_from_elsewhere(
    comparison: Comparison, tmp_path: Path
) -> None:
    html, page = page_of(comparison, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert page.open == []
    assert {"script", "link", "img", "iframe", "object", "image", "use", "a"}.isdisjoint(
        tag for tag, _ in page.tags
    )
    for _, attrs in page.tags:
        assert not {"href", "src", "xlink:href"} & set(attrs)
        assert not any(name.startswith("on") for name in attrs)
    links = set(re.findall(r"https?://[^\s\"'<)]+", html))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in html
    assert set(re.findall(r"url\(([^)]*)\)", html)) <= set(re.findall(r"url\((#[^)]*)\)", html))
    assert "default-src 'none'" in html


def test_the_page_shows_table_figures_winners_and_manifests(
    comparison: Comparison, tmp_path: Path
) -> None:
    html, page = page_of(comparison, tmp_path)
    text = " ".join(page.text)
    assert len(page.all("figure")) == len(page.all("svg")) == len(NAMES + AUCTIONS)
    for policy in ("themis", "fifo", "max_rho"):
        assert policy in text
    assert "sooner, and who later, than under fifo" in text
    assert "workload.sha256" in text
    assert html.count('class="best"') >= 10
    assert "t_id = paper" in text


def test_the_page_is_accessible_and_scales(comparison: Comparison, tmp_path: Path) -> None:
    _, page = page_of(comparison, tmp_path)
    assert page.all("html")[0]["lang"] == "en"
    assert any(meta.get("name") == "viewport" for meta in page.all("meta"))
    for svg in page.all("svg"):
        assert svg["role"] == "img"
        assert len(svg["aria-label"] or "") > 30
        assert "width" not in svg
        assert svg["viewbox"]
    assert all("scope" in heading for heading in page.all("th"))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs]
    assert set(named) <= set(ids)


def test_hostile_names_stay_text(make_result: MakeResult, tmp_path: Path) -> None:
    results = []
    for policy in (EVIL, "fifo"):
        made = make_result(60, "fifo" if policy == "fifo" else "themis", auctions=False)
        apps = made.apps.with_columns(
            app_id=pl.lit(EVIL) + pl.col("app_id"),
            user=pl.lit(EVIL) + pl.col("user"),
            tenant=pl.lit("{{ 7 * 7 }}"),
        )
        workload = {"paths": [EVIL], "sha256": EVIL, "notes": [EVIL]}
        manifest = {**made.manifest, "policy": policy, "workload": workload, "notes": [EVIL]}
        manifest["cluster"] = {"spec": EVIL, EVIL: EVIL}
        results.append(Result(frames={**made.frames, "apps": apps}, manifest=manifest))
    html, page = page_of(compared(results), tmp_path)
    assert not page.all("script")
    assert not page.all("img")
    assert page.open == []
    assert "<script" not in html
    assert EVIL in "".join(page.text)
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


def test_the_same_subject_gives_the_same_bytes(comparison: Comparison, tmp_path: Path) -> None:
    first, _ = page_of(comparison, tmp_path)
    again, _ = page_of(comparison, tmp_path)
    assert first == again


def test_a_single_result_has_no_contest(tiny_result: Result, tmp_path: Path) -> None:
    html, page = page_of(tiny_result, tmp_path)
    text = " ".join(page.text)
    assert 'class="best"' not in html
    assert "Themis: themis" in text
    assert "Who finishes" not in text
    assert "themis: 1 app was unfinished at the horizon" in text
    assert "at least 4.00" in text


def test_no_best_is_marked_where_apps_are_unfinished(
    tiny_result: Result, make_result: MakeResult, tmp_path: Path
) -> None:
    _, page = page_of([tiny_result, make_result(50, "fifo")], tmp_path)
    text = re.sub(r"\s+", " ", " ".join(page.text))
    assert re.search(r"Worst rho \S* ?2\.00 \d", text)
    assert "The runs are on different" not in text


def test_results_of_one_policy_are_told_apart_by_their_settings(
    make_result: MakeResult, tmp_path: Path
) -> None:
    made = make_result(20)
    other = {
        **made.manifest,
        "settings": {"t_id": "demand_capped", "lease_s": 60.0, "horizon_s": None},
    }
    other["workload"] = {"sha256": "f" * 64}
    twin = Result(frames=made.frames, manifest=other)
    _, page = page_of([made, twin, twin], tmp_path)
    text = " ".join(page.text)
    assert "themis lease_s=600.0 t_id=paper" in text
    assert "themis lease_s=60.0 t_id=demand_capped #2" in text
    assert "different workloads: their figures do not compare" in text
    assert "(demand_capped, paper)" in text


def test_several_seeds_share_a_colour_and_a_column(make_result: MakeResult, tmp_path: Path) -> None:
    results = [make_result(40, policy, seed) for policy in ("themis", "fifo") for seed in (0, 1)]
    _, page = page_of(compared(results), tmp_path)
    text = " ".join(page.text)
    assert "Medians over 2 seeds" in text
    assert "Seeds: 0, 1" in text
    assert "2 policies compared" in text


def test_an_empty_run_still_has_a_page(make_result: MakeResult, tmp_path: Path) -> None:
    made = make_result(3)
    frames = {name: frame.clear() for name, frame in made.frames.items()}
    _, page = page_of(Result(frames=frames, manifest=made.manifest), tmp_path)
    assert page.all("figure") == []
    assert "Manifest: themis, seed 0" in " ".join(page.text)


def test_workloads_without_users_have_no_columns_of_users(
    make_result: MakeResult, tmp_path: Path
) -> None:
    results = []
    for policy in ("themis", "fifo"):
        made = make_result(30, policy)
        apps = made.apps.with_columns(user=pl.lit(None, dtype=pl.String))
        results.append(Result(frames={**made.frames, "apps": apps}, manifest=made.manifest))
    _, page = page_of(compared(results), tmp_path)
    text = " ".join(page.text)
    assert "Median time ratio" in text
    assert "Users better off" not in text


def test_a_large_run_stays_below_the_limit(make_result: MakeResult, tmp_path: Path) -> None:
    results = [make_result(40_000, policy) for policy in ("themis", "tiresias", "fifo", "max_rho")]
    write_report(compared(results), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


def test_gains_are_against_the_baseline_asked_for(make_result: MakeResult, tmp_path: Path) -> None:
    results = [make_result(12, policy) for policy in ("themis", "tiresias", "fifo")]
    pages = {
        baseline: write_report(results, tmp_path / "page.html", baseline=baseline).read_text()
        for baseline in (None, "fifo", "tiresias")
    }
    assert pages[None] == pages["fifo"] != pages["tiresias"]
    assert "against tiresias" in pages["tiresias"]
    assert "against fifo" not in pages["tiresias"]
    with pytest.raises(ThemisError, match="baseline 'las' is not on the page: expected one of the"):
        write_report(results, tmp_path / "page.html", baseline="las")


def test_failures_are_named(tiny_result: Result, tmp_path: Path) -> None:
    with pytest.raises(ThemisError, match="no run to report on"):
        write_report([], tmp_path / "report.html")
    with pytest.raises(ThemisError, match=r"gone/report\.html: cannot be written"):
        write_report(tiny_result, tmp_path / "gone" / "report.html")
    with pytest.raises(ThemisError, match="format 'pdf' is unknown: expected png, svg"):
        figures(tiny_result, tmp_path, formats=("pdf",))
    (tmp_path / "file").write_text("x")
    with pytest.raises(ThemisError, match="file: cannot be written"):
        figures(tiny_result, tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_figures_are_files_of_their_own(comparison: Comparison, tmp_path: Path) -> None:
    files = figures(comparison, tmp_path / "figures")
    assert [path.name for path in files] == [
        f"{name}.{suffix}" for name in NAMES + AUCTIONS for suffix in ("png", "svg")
    ]
    for path in files:
        if path.suffix == ".png":
            width, height = struct.unpack(">II", path.read_bytes()[16:24])
            assert width > 600
            assert height > 300
        else:
            root = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - our own file
            assert root.tag.endswith("svg")


def test_a_policy_has_the_same_colour_in_any_company() -> None:
    alone = policy_colours(["themis"])["themis"]
    for company in (["fifo", "themis"], ["x", "y", "themis", "tiresias"], ["las", "themis"]):
        colours = policy_colours(company)
        assert colours["themis"] == alone
        assert len(set(colours.values())) == len(company)
    assert policy_colours(["tiresias", "las"])["tiresias"] == policy_colours(["las"])["las"]
    assert len(policy_colours([str(k) for k in range(20)])) == 20


def test_every_policy_has_a_colour_of_its_own() -> None:
    names = [policy.name for policy in POLICIES]
    colours = policy_colours(names)
    assert len(set(colours.values())) == len(names)
    assert {name: policy_colours([name])[name] for name in names} == colours


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.RATIO, "\N{EN DASH}"),
        (0.12345, Unit.RATIO, "0.123"),
        (0.0012345, Unit.RATIO, "0.00123"),
        (1e-9, Unit.RATIO, "0.000000"),
        (1.2345, Unit.RATIO, "1.23"),
        (123456.0, Unit.RATIO, "123,456"),
        (0.5, Unit.SHARE, "50.0 %"),
        (1.0, Unit.SHARE, "100 %"),
        (0, Unit.SECONDS, "0 s"),
        (41.5, Unit.SECONDS, "41.5 s"),
        (719.0, Unit.SECONDS, "12.0 min"),
        (11_700.0, Unit.SECONDS, "3.25 h"),
        (1_600_000.0, Unit.SECONDS, "18.5 d"),
        (7200.0, Unit.GPU_SECONDS, "2.00 GPU-h"),
        (82247, Unit.COUNT, "82,247"),
        (True, Unit.FLAG, "yes"),
        (False, Unit.FLAG, "no"),
    ],
)
def test_numbers_read_well(value: float | None, unit: Unit, text: str) -> None:
    assert worded(value, unit) == text.replace(" ", "\N{NO-BREAK SPACE}")


def test_results_load_without_charts() -> None:
    code = (
        "import sys, themis.comparison.comparing, themis.results.result\n"
        "print([m for m in ('altair', 'vl_convert', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("values", [[1.0], [3.3], [1e-6], [0.99, 1.01], [1e-3, 1e7]])
def test_a_log_axis_has_ticks_whatever_the_values(values: list[float]) -> None:
    axis: Any = distributions._log_axis("rho", pl.DataFrame({"value": values})).to_dict()
    low, high = axis["scale"]["domain"]
    assert low <= min(values)
    assert max(values) <= high
    assert len(axis["axis"]["values"]) >= 2
    assert all(low <= tick <= high for tick in axis["axis"]["values"])


def test_apps_that_took_no_time_have_no_place_on_a_log_axis(
    make_result: MakeResult, tmp_path: Path
) -> None:
    made = make_result(3, auctions=False)
    apps = made.apps.with_columns(end_s="arrival_s", rho=pl.lit(0.0))
    instant = Result(frames={**made.frames, "apps": apps}, manifest=made.manifest)
    names = [path.stem for path in figures(instant, tmp_path, formats=("svg",))]
    assert "completion" not in names
    assert "rho" not in names


def test_the_page_tells_who_gains_and_whom_the_horizon_cuts_off(
    make_result: MakeResult, tmp_path: Path
) -> None:
    cut = make_result(50, "themis")
    last = cut.apps["app_id"][-1]
    unfinished = pl.when(pl.col("app_id") == last)
    apps = cut.apps.with_columns(
        state=unfinished.then(pl.lit("unfinished")).otherwise("state"),
        end_s=unfinished.then(None).otherwise("end_s"),
        rho_is_bound=pl.col("app_id") == last,
    )
    themis = Result(frames={**cut.frames, "apps": apps}, manifest=cut.manifest)
    html, page = page_of(compared([themis, make_result(50, "fifo")]), tmp_path)
    text = " ".join(" ".join(page.text).split())
    assert "What the horizon cuts off" in text
    assert "1 of 50" in text
    assert "apps that gain and lose most" in text
    gains = html.split('id="gains-table"')[1].split("</table>")[0]
    assert re.findall(r"<td>([^<]*)</td>", gains)[:2] == ["49", "1"]
    whole, _ = page_of(compared([make_result(50, "themis"), make_result(50, "fifo")]), tmp_path)
    assert "What the horizon cuts off" not in whole


def test_many_combinations_are_rows_and_only_telling_ones_are_drawn(
    make_result: MakeResult, tmp_path: Path
) -> None:
    labels = [f"fairness_knob={knob}, lease_s={lease}" for knob in range(10) for lease in (1, 2, 3)]
    results = [make_result(40, "themis", seed) for seed in range(len(labels))]
    runs = [
        replace(
            digest(result, label),
            seed=0,
            point=dict(part.split("=") for part in label.split(", ")),
        )
        for result, label in zip(results, labels, strict=True)
    ]
    apps = pl.concat(
        [
            app_rows(result, label).with_columns(seed=pl.lit(0, dtype=pl.UInt64))
            for result, label in zip(results, labels, strict=True)
        ]
    )
    comparison = Comparison(runs, apps, results={})
    shown = drawn_part(comparison)
    assert len(shown.policies) <= 6
    worst = {run.label: float(run.summary["rho_max"] or 0) for run in runs}
    extremes = {min(labels, key=worst.__getitem__), max(labels, key=worst.__getitem__)}
    assert extremes | {comparison.baseline} <= set(shown.policies)
    html, page = page_of(comparison, tmp_path)
    headline = html.split('id="headline-table"')[1].split("</table>")[0]
    assert re.findall(r'<th scope="row">([^<]*)</th>', headline) == labels
    effects = [svg for svg in page.all("svg") if "by axis" in str(svg["aria-label"])]
    assert len(effects) == 4
    assert len(html) < 2_000_000
    assert "<h1>Themis: 30 combinations compared</h1>" in html


def test_of_many_policies_themis_is_drawn(make_result: MakeResult, tmp_path: Path) -> None:
    names = [policy.name for policy in POLICIES][:10]
    assert "themis" in names
    # All alike: the first is the best and the worst, and the baseline is another.
    results = [make_result(40, name) for name in names]
    html, _ = page_of(results, tmp_path)
    assert "<h1>Themis: 10 policies compared</h1>" in html
    [drawn] = re.findall(r"Drawn run by run: (.*?)</p>", html)
    assert "themis" in drawn.rpartition(": ")[2].split("; ")


def test_occupancy_is_who_held_most_of_a_machine(tiny_result: Result) -> None:
    held = occupancy(tiny_result.leases, 10.0, 220.0, bins=21)
    rows = [tuple(row.values()) for row in held.to_dicts()]
    assert rows == [
        ("m0", 0.0, 100.0, "a", 1.0),
        ("m0", 110.0, 210.0, "b", 0.5),
        ("m1", 50.0, 70.0, "b", 0.5),
        ("m1", 70.0, 80.0, "b", 1.0),
        ("m1", 80.0, 90.0, "b", 0.5),
    ]
    assert occupancy(tiny_result.leases, 10.0, 10.0).is_empty()


def test_occupancy_picks_machines_evenly_and_in_natural_order(make_table: MakeTable) -> None:
    lease = {"app_id": "a", "slot": 0, "gpu_first": 0, "gpus": 1, "start_s": 0.0, "end_s": 9.0}
    lease["gpu_milli"] = 1000
    leases = make_table("leases", [{**lease, "machine": f"m{number}"} for number in range(30)])
    picked = occupancy(leases, 0.0, 9.0, machines=4)
    assert picked.get_column("machine").to_list() == ["m0", "m10", "m19", "m29"]


def test_the_page_has_a_table_of_tenants_where_there_are_two(
    make_result: MakeResult, tmp_path: Path
) -> None:
    result = make_result(12, "themis")
    page = write_report(result, tmp_path / "some.html").read_text()
    assert '<h2 id="tenants">Tenants</h2>' in page
    table = result.tenants()
    assert table.height == 5
    for tenant in table["tenant"]:
        assert f'<th scope="row">{tenant}</th>' in page
    lone = result.apps.with_columns(tenant=pl.lit("one"))
    alone = Result({**result.frames, "apps": lone}, result.manifest)
    assert "Tenants" not in write_report(alone, tmp_path / "one.html").read_text()
