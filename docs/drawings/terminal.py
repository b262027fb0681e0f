#!/usr/bin/env python3
"""Draws what a terminal shows as SVG, for the README: docs/drawings/explain.terminal becomes explain.svg.

    docs/drawings/terminal.py explain

The text is the output of `helenus shell` as it is. The first line is drawn as the prompt with its statement, bars get a colour.
"""

import html
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT, MARGIN = 7.83, 18, 18
COLOURS = [
    (re.compile("[█▉▊▋▌▍▎▏]+"), "#56b6c2"),
    (re.compile("^helenus(:[a-z]+)?>"), "#98c379"),
    (re.compile("'[^']*'"), "#e5c07b"),
    (re.compile(r"\b(EXPLAIN|ANALYZE|SELECT|FROM|WHERE|AND|LIMIT)\b"), "#61afef"),
    (re.compile("[├└─│]+"), "#5c6370"),
]


def pieces(line):
    """The line cut into texts with their colours; where two patterns fit, the earlier one counts."""
    colours = [None] * len(line)
    for pattern, colour in reversed(COLOURS):
        for found in pattern.finditer(line):
            colours[found.start() : found.end()] = [colour] * (found.end() - found.start())
    start = 0
    for at in range(1, len(line) + 1):
        if at == len(line) or colours[at] != colours[start]:
            yield start, line[start:at], colours[start]
            start = at


def drawn(lines):
    width = round(max(map(len, lines)) * WIDTH + 2 * MARGIN)
    height = len(lines) * HEIGHT + 2 * MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    yield f"<title>{html.escape(lines[0])}</title>"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#21252b"/>'
    yield '<g font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13" fill="#d7dae0">'
    for row, line in enumerate(lines):
        y = MARGIN + row * HEIGHT + 13
        for at, text, colour in pieces(line):
            if not text.strip():
                continue
            fill = f' fill="{colour}"' if colour else ""
            lead = len(text) - len(text.lstrip())
            text = text.strip()
            # The length makes columns line up whatever font is there.
            length = f' textLength="{len(text) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text x="{MARGIN + (at + lead) * WIDTH:.1f}" y="{y}"{length}{fill} xml:space="preserve">{html.escape(text)}</text>'
    yield "</g></svg>"


def main():
    name = sys.argv[1]
    lines = (HERE / f"{name}.terminal").read_text().rstrip("\n").split("\n")
    (HERE / f"{name}.svg").write_text("\n".join(drawn(lines)) + "\n")


if __name__ == "__main__":
    main()
