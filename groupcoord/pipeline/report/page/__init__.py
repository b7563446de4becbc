"""The page: one HTML file that needs nothing else, the same bytes for the same report."""

from groupcoord.pipeline.report.page.html import render_page

__all__ = ["render_page"]
