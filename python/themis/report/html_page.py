"""Pages from templates, and as files that appear whole or not at all."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from markupsafe import Markup

from themis.errors import ThemisError
from themis.files.atomic_file import new_file
from themis.report.palette import css_variables
from themis.report.wording import visible

__all__ = ["rendered", "write_page"]


def rendered(template: str, **values: object) -> str:
    """Return a page of `python/themis/report/templates`.

    Every text in `values` is escaped, and control characters are marked.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - slow

    environment = Environment(
        loader=PackageLoader("themis.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template(template).render(
        **values,
        light=Markup(css_variables(dark=False)),  # noqa: S704 - our own constants
        dark=Markup(css_variables(dark=True)),  # noqa: S704 - our own constants
    )
    return visible(page)


def write_page(page: str, path: str | PathLike[str]) -> Path:
    """Write a page beside its place and move it there; return the path.

    Raises
    ------
    ThemisError
        The file cannot be written.
    """
    target = Path(path)
    try:
        with new_file(target) as partial:
            partial.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ThemisError(f"{target}: cannot be written: {error.strerror}") from error
    return target
