"""The FastAPI application of the control API. Each operation exists twice: at the root for the first broker, and under
``/brokers/NAME`` for the broker of that name."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, cast

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from groupcoord.control import problem_documents
from groupcoord.control.access import AccessControl
from groupcoord.control.controlled_clusters import DEFAULT, ControlledClusters
from groupcoord.control.escaped_slashes import EscapedSlashes
from groupcoord.control.models import Problem
from groupcoord.control.problem_documents import MEDIA_TYPE, TITLES
from groupcoord.control.routes.append_rules import appends
from groupcoord.control.routes.clock import clock
from groupcoord.control.routes.clusters import of_broker, of_process
from groupcoord.control.routes.faults import faults
from groupcoord.control.routes.groups import groups
from groupcoord.control.routes.nodes import controller, nodes
from groupcoord.control.routes.page import page_routes
from groupcoord.control.routes.topics import topics
from groupcoord.control.routes.trace import trace
from groupcoord.control.routes.transactions import transactions

DESCRIPTION = """\
What `groupcoord.Cluster` offers to a test in Python, for tests in every language: topics, groups, waits, the clock, faults and
the trace of a broker.

Paths at the root are about the first broker, which is called `default`. Every path except those of `/brokers` and `/health`
also exists under `/brokers/NAME` and is then about that broker: use it as the base URL.

Errors are problem documents (RFC 9457), `application/problem+json`, that name the wrong field and say what would be right."""


_DONE = {"200": "Done", "201": "Created", "204": "Done, without a response body"}


class ControlApp(FastAPI):
    """FastAPI whose OpenAPI description defines each problem response once, and refers to it from the operations."""

    def openapi(self) -> dict[str, Any]:
        """The description of the API (OpenAPI 3.1)."""
        if self.openapi_schema is None:
            described = super().openapi()
            components = described["components"]
            problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            components["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
            content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
            components["responses"] = {
                f"Problem{status}": {"description": title, "content": content} for status, title in TITLES.items()
            }
            for operation in (each for path in described["paths"].values() for each in path.values()):
                for status, response in operation["responses"].items():
                    if status in _DONE:
                        response["description"] = _DONE[status]
                    else:
                        operation["responses"][status] = {"$ref": f"#/components/responses/Problem{status}"}
        return self.openapi_schema or {}


def create_app(clusters: ControlledClusters, *, token: str | None = None, page: str | None = None) -> ControlApp:
    """The application that controls ``clusters``. With a ``token``, requests must carry it. ``page`` is the HTML of the live
    page, which is served only if it is given."""
    app = ControlApp(
        title="groupcoord control API",
        version=version("groupcoord"),
        description=DESCRIPTION,
        docs_url=None,  # FastAPI's two pages load scripts from the internet
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        servers=[
            {"url": "/", "description": "the first broker"},
            {
                "url": "/brokers/{name}",
                "description": "a further broker",
                "variables": {"name": {"default": DEFAULT, "description": "its name"}},
            },
        ],
    )
    app.state.clusters = clusters
    app.add_middleware(EscapedSlashes)
    app.add_middleware(AccessControl, token=token)
    problem_documents.install(app)
    methods_of: dict[str, set[str]] = {}
    for router, prefix in (*_mounted(), *(() if page is None else ((page_routes(page), ""),))):
        app.include_router(router, prefix=prefix, include_in_schema=not prefix)
        for route in cast("list[APIRoute]", router.routes):
            methods_of.setdefault(prefix + route.path_format, set()).update(route.methods or ())
    app.state.methods_of = methods_of
    return app


def _mounted() -> Iterator[tuple[APIRouter, str]]:
    """The routers with their prefixes."""
    yield of_process, ""
    for router in (of_broker, nodes, controller, topics, groups, transactions, clock, faults, appends, trace):
        yield router, ""
        yield router, "/brokers/{broker}"
