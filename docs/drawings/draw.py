#!/usr/bin/env python3
"""Makes an SVG of each drawing in this folder: `docs/drawings/draw.py` writes NAME.svg beside NAME.txt.

A drawing is text of box characters, arrowheads and words on a grid of characters. Lines become strokes, arrowheads
triangles, and each run of other characters a text at its place. Needs nothing but Python.
"""

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 8, 17  # of a character, pixels
# Which edges of its cell a character reaches: up, right, down, left.
EDGES = {"u": f"v{-HEIGHT / 2:g}", "d": f"v{HEIGHT / 2:g}", "l": f"h{-WIDTH / 2:g}", "r": f"h{WIDTH / 2:g}"}
LINES = {"─": "rl", "│": "ud", "┌": "rd", "┐": "dl", "└": "ur", "┘": "ul", "├": "urd", "┤": "udl", "┬": "rdl", "┴": "url", "┼": "urdl"}
HEADS = {"▼": ((-4, -4), (4, -4), (0, 5)), "▲": ((-4, 4), (4, 4), (0, -5)), "►": ((-4, -4), (-4, 4), (5, 0)), "◄": ((4, -4), (4, 4), (-5, 0))}


def words(line):
    """Each text of a line with its column: what stands between two spaces, or between lines."""
    start = None
    for column, char in enumerate(line + "  "):
        ends = char in LINES or char in HEADS or line[column : column + 2].strip() == ""
        if start is None and not ends and char != " ":
            start = column
        elif start is not None and ends:
            yield start, line[start:column].rstrip()
            start = None


def svg(text):
    lines = text.rstrip("\n").split("\n")
    width, height = max(map(len, lines)) * WIDTH + 8, len(lines) * HEIGHT + 8
    strokes, heads, texts = [], [], []
    for row, line in enumerate(lines):
        for column, char in enumerate(line):
            x, y = column * WIDTH + 8, row * HEIGHT + 12
            strokes += [f"M{x} {y}{EDGES[edge]}" for edge in LINES.get(char, "")]
            if char in HEADS:
                heads.append("M" + "L".join(f"{x + dx} {y + dy}" for dx, dy in HEADS[char]) + "Z")
                # The line goes on behind the head.
                back = {"▼": "u", "▲": "d", "►": "l", "◄": "r"}[char]
                strokes.append(f"M{x} {y}{EDGES[back]}")
        texts += [
            f'<text x="{column * WIDTH + 4}" y="{row * HEIGHT + 16}" textLength="{len(word) * WIDTH}">{escape(word)}</text>'
            for column, word in words(line)
        ]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<rect width="100%" height="100%" fill="#fff"/>
<path d="{"".join(strokes)}" stroke="#555" fill="none"/>
<path d="{"".join(heads)}" fill="#555"/>
<g font-family="monospace" font-size="13" fill="#111">
{chr(10).join(texts)}
</g>
</svg>
"""


if __name__ == "__main__":
    for drawing in sorted(Path(__file__).parent.glob("*.txt")):
        drawing.with_suffix(".svg").write_text(svg(drawing.read_text()))
