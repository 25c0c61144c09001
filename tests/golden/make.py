"""Makes the golden files that are missing: `python -m tests.golden.make`.

A golden file fixes the bytes of a record type: `hex` is what `encode` gives for `record`, now and in every release to
come. One that was released is never made again: a schema that changes gets a new one, and the old one stays readable.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dueline.schemas.codec import TYPES, encode
from tests.golden.samples import filled, sparse, to_json

FOLDER = Path(__file__).parent


def main() -> None:
    """Write `<Type>.json` for each type that has none."""
    for name, cls in TYPES.items():
        file = FOLDER / f"{name}.json"
        if not file.exists():
            cases = [case(sparse(cls)), case(filled(cls))]
            file.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def case(record: Any) -> dict[str, object]:
    """A record with its bytes."""
    return {"hex": encode(record).hex(), "record": to_json(record)}


if __name__ == "__main__":
    main()
