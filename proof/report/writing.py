"""Both files of a report, from histories and their verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from proof.report.document import document
from proof.report.figures import Pair, figures
from proof.report.page import page
from proof.report.setting import Setting

JSON: Final = "report.json"
HTML: Final = "report.html"


def write_report(pairs: Sequence[Pair], folder: Path, setting: Setting, made_ms: int) -> tuple[Path, Path]:
    """Write report.json and report.html into the folder, which is made; their paths. `made_ms`: the time to state.

    Raises OSError. A file that stood there before is replaced."""
    sums = figures(pairs)
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / JSON, folder / HTML
    text = json.dumps(document(pairs, sums, setting, made_ms), indent=1, ensure_ascii=True)
    paths[0].write_text(text + "\n", encoding="utf-8")
    paths[1].write_text(page(pairs, sums, setting, made_ms), encoding="utf-8")
    return paths
