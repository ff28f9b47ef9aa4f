"""A PDF to send: the HTML page, printed by the Chromium that is installed, without network, in a profile of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file
from waterjar.view.report import blocks as b
from waterjar.view.report.renderers import html

BROWSER = "WATERJAR_BROWSER"
"""The environment variable that names the browser."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 120
"""How long a page may take; a large study takes a few seconds."""

_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # small in containers
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no network, whatever it might want there
    "--no-pdf-header-footer",
    "--virtual-time-budget=60000",  # until the charts are drawn
)


def find_browser() -> str:
    """The browser that prints: the one that WATERJAR_BROWSER names, or the first that is found."""
    wanted = os.environ.get(BROWSER)
    names = (wanted,) if wanted else NAMES
    found = next((path for path in map(shutil.which, names) if path is not None), None)
    if found is not None:
        return found
    missing = f"{BROWSER} names {wanted!r}, which cannot be run" if wanted else f"there is none of {', '.join(NAMES)}"
    raise WaterjarError(
        f"a report as PDF is its page printed by Chromium, and {missing}: install Chromium, name it in {BROWSER}, or "
        "write the report as HTML and print it from any browser"
    )


def write(report: b.Report, path: Path) -> None:
    """Print the report; what stood at `path` is replaced when the new file is whole."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="waterjar-print-", ignore_cleanup_errors=True) as made:
        place = Path(made)
        page, printed = place / "report.html", place / "report.pdf"
        write_file(page, html.render(report), sync=False)
        told = _run([browser, *_FLAGS, *_sandbox(), f"--user-data-dir={place}/profile", f"--print-to-pdf={printed}",
                     f"{page.as_uri()}#print"])  # fmt: skip
        data = printed.read_bytes() if printed.is_file() else b""
    if not data.startswith(b"%PDF"):
        raise WaterjarError(f"{browser} printed no PDF: {told[-300:] or 'it said nothing'}")
    if not data.rstrip().endswith(b"%%EOF"):
        said = told[-300:] or "it said nothing"
        raise WaterjarError(
            f"{browser} printed a part of the PDF, {len(data)} bytes: {said}; is there room left in {place.parent}?"
        )
    write_file(path, data)


def _sandbox() -> list[str]:
    """Chromium refuses to start as root with its sandbox; the page is our own and fetches nothing."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


def _run(command: list[str]) -> str:
    """Run a browser with all its processes, and give what it said."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise WaterjarError(f"{command[0]} could not be started: {error.strerror}") from error
    with process:
        try:
            _, told = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise WaterjarError(f"{command[0]} did not print the report in {SECONDS} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return " ".join(told.decode(errors="replace").split())
