"""Routes of the live page (``groupcoord serve --page``): the HTML, and the dissected bytes of a message."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from groupcoord.control.route_dependencies import Target
from groupcoord.page.dissections import dissection_of

PATH = "/page/"


def page_routes(html: str) -> APIRouter:
    """The routes of the live page ``html``; they are not part of the OpenAPI description."""
    page = APIRouter(include_in_schema=False)

    @page.get(PATH)
    async def show_page() -> HTMLResponse:
        """The page. It contains no data: it requests them, with the token if one is needed."""
        return HTMLResponse(html, headers={"Cache-Control": "no-store"})

    @page.get(f"{PATH}bytes/{{seq}}")
    async def message_bytes(cluster: Target, seq: int) -> dict[str, Any] | None:
        """The message of that trace entry, field by field; null if the entry is not of a message, or its bytes are not kept."""
        try:
            dissection = dissection_of(cluster.trace[seq])
        except KeyError as gone:
            raise LookupError(gone.args[0]) from None
        return None if dissection is None else dissection.as_json()

    return page
