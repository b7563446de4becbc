"""The page: one HTML file that needs nothing else, the same bytes for the same report."""

from groupcoord.pipeline.report.page.html import html_of

__all__ = ["html_of"]
