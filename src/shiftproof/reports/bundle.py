"""The script that draws charts in a browser, kept in a cache because making it takes over a second."""

from __future__ import annotations

import contextlib
from importlib.metadata import version

from shiftproof.errors import StoreError
from shiftproof.files import cache_folder, write_whole


def chart_script() -> str:
    """Vega, Vega-Lite and vega-embed as one JavaScript module without imports; sets ``window.vegaEmbed``."""
    path = cache_folder() / f"charts-{version('vl-convert-python')}.js"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        script = _make_script()
    # a cache that cannot be written costs a second next time, nothing more
    with contextlib.suppress(StoreError, OSError):
        write_whole(path, script.encode())
    return script


def _make_script() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]  # the argument has a default that its stub leaves out
