"""Run all benchmarks: `make bench`."""

import argparse
import json
import sys
from pathlib import Path

import evaluation
import guard
import jail
import judging
import kernel
import model
import packs
import search
import shadow
from table import show, write_docs

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often to alternate with the peer"
    )
    parser.add_argument("--docs", action="store_true", help="also write docs/benchmarks.md")
    parser.add_argument("--only", help="run only this section")
    options = parser.parse_args()
    sections = {
        **kernel.sections(options.rounds),
        **judging.sections(),
        **search.sections(),
        **jail.sections(),
        **evaluation.sections(),
        **guard.sections(),
        **packs.sections(),
        **shadow.sections(),
        **model.sections(),
    }
    if options.only:
        sections = {options.only: sections[options.only]}
    rows, results = [], {}
    for name, section in sections.items():
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        row, results[name] = section()
        rows.append(row)
    show(rows)
    out = ROOT / "bench" / "results.json"
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"written: {out.relative_to(ROOT)}")
    if options.docs:
        write_docs(rows, ROOT / "docs" / "benchmarks.md")


if __name__ == "__main__":
    main()
