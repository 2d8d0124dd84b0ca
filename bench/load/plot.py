"""A small bar chart as hand-written SVG: CPU per unit of work, gateways side by side, one group per part."""

from html import escape
from pathlib import Path

from bench.load.figures import Figures, figures_from
from bench.load.rounds import Outcome

_WIDTH, _BAR, _GAP, _LEFT = 640, 18, 6, 150
_COLOURS = {"nginx": "#7a869a", "headrace": "#2563eb", "minimal": "#a3b8d9"}
_OTHER = "#94a3b8"
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#334155}"
    ".t{font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#cbd5e1}}"
)


def svg_from(outcomes: list[Outcome]) -> str:
    """Bars scaled per part, since an event and a request differ by their nature; labels carry µs and the ratio."""
    shapes: list[str] = []
    y = 8
    for outcome in outcomes:
        if outcome.part.unit == "stream":
            continue
        figures = figures_from(outcome)
        title = f"CPU per {outcome.part.unit}: {outcome.part.title}"
        y += 16
        shapes.append(f'<text class="t" x="8" y="{y}">{escape(title)}</text>')
        y += 8
        widest = max((item.median_us for item in figures), default=1.0)
        for item in figures:
            shapes += _bar(item, y, widest)
            y += _BAR + _GAP
        y += 10
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y}" viewBox="0 0 {_WIDTH} {y}" role="img" '
        f'aria-label="CPU per unit of work">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )


def _bar(item: Figures, y: int, widest: float) -> list[str]:
    room = _WIDTH - _LEFT - 150
    width = max(1, round(room * item.median_us / widest))
    colour = _COLOURS.get(item.gateway, _OTHER)
    baseline = y + _BAR - 5
    return [
        f'<text x="{_LEFT - 8}" y="{baseline}" text-anchor="end">{escape(item.gateway)}</text>',
        f'<rect x="{_LEFT}" y="{y}" width="{width}" height="{_BAR}" rx="3" fill="{colour}"/>',
        f'<text x="{_LEFT + width + 8}" y="{baseline}">{item.median_us:.1f} µs, {item.ratio:.2f} x nginx</text>',
    ]


def write_plot(path: Path, outcomes: list[Outcome]) -> None:
    """Write the chart."""
    path.write_text(svg_from(outcomes))
