"""The live page of the first broker, and what it asks beside the API: ``groupcoord serve --page``."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from groupcoord.control.routing import Target
from groupcoord.page.dissections import dissection_of

PATH = "/page/"


def page_routes(html: str) -> APIRouter:
    """The routes of a page whose file is ``html``; they are no part of the described API."""
    page = APIRouter(include_in_schema=False)

    @page.get(PATH)
    async def show_page() -> HTMLResponse:
        """The page. It holds no data: it asks for them, with the token if there is one."""
        return HTMLResponse(html, headers={"Cache-Control": "no-store"})

    @page.get(f"{PATH}bytes/{{seq}}")
    async def message_bytes(cluster: Target, seq: int) -> dict[str, Any] | None:
        """The message of that entry, field by field; null if it is of none, or its bytes are not kept."""
        try:
            dissection = dissection_of(cluster.trace[seq])
        except KeyError as gone:
            raise LookupError(gone.args[0]) from None
        return None if dissection is None else dissection.as_json()

    return page
