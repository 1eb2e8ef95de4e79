"""What is installed: version, public names, types, data files, and no more."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import pickle
import subprocess
import sys

import pytest

import themis
import themis._core as core

PUBLIC = {
    "AppState",
    "Bid",
    "Cluster",
    "ClusterError",
    "PolicyError",
    "ScenarioError",
    "ThemisError",
    "TraceError",
    "Workload",
    "__version__",
    "build_info",
    "clear_auction",
    "compare",
    "generate",
    "load_result",
    "read_trace",
    "simulate",
}


def test_one_version_in_python_rust_and_metadata() -> None:
    assert themis.__version__ == core.__version__ == importlib.metadata.version("themis-sched")


def test_public_names_are_there_and_listed() -> None:
    assert set(themis.__all__) >= PUBLIC
    assert [name for name in themis.__all__ if not hasattr(themis, name)] == []
    assert set(themis.__all__) <= set(dir(themis))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = themis.nonsense


def test_importing_themis_loads_nothing_heavy() -> None:
    script = (
        "import sys, themis\n"
        "print([n for n in ('polars', 'numpy', 'pydantic', 'themis._core') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_errors_are_themis_errors_and_value_errors_and_pickle() -> None:
    for name in ("ClusterError", "PolicyError", "ScenarioError", "TraceError"):
        kind = getattr(themis, name)
        assert issubclass(kind, themis.ThemisError)
        assert issubclass(kind, ValueError)
        again = pickle.loads(pickle.dumps(kind("a: b")))  # noqa: S301 - our own bytes
        assert (type(again), str(again)) == (kind, "a: b")


@pytest.mark.parametrize("name", ["py.typed", "_core.pyi", "report/templates/report.html.j2"])
def test_data_files_are_installed(name: str) -> None:
    assert importlib.resources.files("themis").joinpath(name).is_file()


def test_the_distribution_installs_one_package_and_one_command() -> None:
    distribution = importlib.metadata.distribution("themis-sched")
    scripts = [entry.value for entry in distribution.entry_points.select(group="console_scripts")]
    assert scripts == ["themis.cli.root:main"]
    assert distribution.metadata["License-Expression"] == "Apache-2.0"
    assert "LICENSE" in str(distribution.metadata.get_all("License-File"))


def test_every_module_says_what_it_is_for() -> None:
    folder = importlib.resources.files("themis")
    modules = [
        item
        for place in (folder, *(child for child in folder.iterdir() if child.is_dir()))
        for item in place.iterdir()
        if item.name.endswith(".py")
    ]
    assert len(modules) > 30
    assert [m.name for m in modules if not m.read_text(encoding="utf-8").startswith('"""')] == []
