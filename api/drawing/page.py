"""A drawing as a page of HTML that stands alone."""

from __future__ import annotations

from html import escape

from .canvas import Drawing

_PAGE_STYLE = """
body { margin: 0 auto; padding: 24px; max-width: 1200px; font: 15px system-ui, sans-serif; color: #1f2430; background: #f5f6f8; }
h1 { font-size: 22px; }
nav { display: flex; flex-wrap: wrap; gap: 6px 14px; margin-bottom: 16px; font: 13px ui-monospace, monospace; }
nav a { color: #2f5fae; }
main { overflow-x: auto; background: #ffffff; border: 1px solid #dfe3ea; border-radius: 10px; }
"""


def html_page(title: str, drawing: Drawing) -> str:
    """The page: a title, links to the parts of the drawing, the drawing."""
    links = "".join(f'<a href="#{anchor}">{escape(name)}</a>' for anchor, name in drawing.links)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f"<title>{escape(title)}</title><style>{_PAGE_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1><nav>{links}</nav><main>{drawing.svg()}</main></body></html>\n"
    )
