"""How the pictures of docs/images are written: SVG of fixed size that follows the reader's light or dark mode."""
import html
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"

STYLE = """text{font-family:ui-sans-serif,system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px;fill:#24292f}
.page{fill:#fff}.title{font-size:15px;font-weight:600}.quiet{fill:#57606a}.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:#d8dee4}.a{fill:#5b9bf0}.b{fill:#3f7fd6}.none{fill:#e4e8ed}.fw{fill:#8db8f4}.bw{fill:#6cc48e}
.cu{fill:#ffbe5c}.iv{fill:#f2847b}.pc{fill:#dba3ee}.up{fill:#9fd8d4}.co{fill:#b6bfc9}.train{stroke:#5b9bf0;fill:none;stroke-width:1.6}
.held{stroke:#d4622a;fill:none;stroke-width:2}.dot{fill:#d4622a}text.held{fill:#b34a16;stroke:none}text.train{fill:#2f6fc4;stroke:none}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.quiet{fill:#9198a1}.grid{stroke:#30363d}
.none{fill:#262d36}.co{fill:#6a7480}text.held{fill:#f0905c}text.train{fill:#79b0f7}.held{stroke:#f0905c}.dot{fill:#f0905c}}"""


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


class Picture:
    """An SVG of fixed size that follows the reader's light or dark mode."""

    def __init__(self, width, height, title, style=STYLE):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img">\n<title>{html.escape(title)}</title>\n<style>{style}</style>',
            f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
        ]

    def box(self, kind, x, y, width, height):
        self.parts.append(
            f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"/>'
        )

    def boxes(self, kind, rectangles):
        """Many boxes of one kind as one path, which keeps files small."""
        path = "".join(
            f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h-{number(width)}z"
            for x, y, width, height in rectangles
        )
        self.parts.append(f'<path class="{kind}" d="{path}"/>')

    def line(self, points, kind):
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(f'<polyline class="{kind}" points="{path}"/>')

    def text(self, x, y, words, kind=""):
        self.parts.append(f'<text x="{number(x)}" y="{number(y)}" class="{kind}">{html.escape(words)}</text>')

    def save(self, name):
        (IMAGES / name).write_text("\n".join([*self.parts, "</svg>"]) + "\n")
