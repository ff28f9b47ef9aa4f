"""A folder that is written beside its place and moved there when it is whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waterjar.errors import WaterjarError


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Yield a folder to write, which becomes `target` at the end; after an error nothing is left of it.

    The draft stands one level deeper than its target will, so that nothing takes it for one of the target's kind.
    """
    if target.exists() or target.is_symlink():
        raise WaterjarError(f"{target} exists already: choose another place, or move it away first")
    made = [folder for folder in target.parents if not folder.exists()]
    draft: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name[:50]}-", suffix=".partial", dir=target.parent))
        place = draft / target.name
        yield place
        place.rename(target)
        made = []
    except OSError as error:
        raise WaterjarError(f"could not write {error.filename or target}: {error.strerror}") from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        for folder in made:  # the nearest first; those that somebody else has filled since stay
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
