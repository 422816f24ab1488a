"""The description of the service, made of its routes: OpenAPI 3.1, and a page to read."""

import dataclasses
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from inspect import getdoc
from typing import Any, get_args

import msgspec
from starlette.responses import HTMLResponse, Response

from rareswitch.service.app import JSON, KEY_HEADERS, MSGPACK, STATUS, Call, Route
from rareswitch.service.page import HEADERS, STATIC, static_file
from rareswitch.version import __version__

__all__ = ["description"]

#: Of every route with a scope, beside those of :data:`~rareswitch.service.app.STATUS`.
_REFUSED = {400: "not readable", 401: "no valid token", 403: "not allowed", 413: "too long", 415: "another media type"}
_PARAMETER = re.compile(r"\{(\w+)\}")


@cache
def description(routes: tuple[Route, ...]) -> dict[str, Any]:
    """The routes as an OpenAPI document."""
    types = [*dict.fromkeys([*_types(routes), *(route.refuses for route in routes)])]
    references, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(types, references, strict=True))
    statuses = {**_REFUSED, **{status: kind.__name__ for kind, status in STATUS}, 408: "too slow", 421: "wrong host"}
    schemes = {"token": {"type": "http", "scheme": "bearer"}}
    schemes |= {header: {"type": "apiKey", "in": "header", "name": header} for header in KEY_HEADERS}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        answer: dict[str, Any] = {"description": route.summary}
        if route.status == 204:
            pass
        elif route.gives is not None:
            answer["content"] = {media: {"schema": schemas[route.gives]} for media in (JSON, MSGPACK)}
        else:
            answer["content"] = {route.media.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}}
        refusal = {JSON: {"schema": schemas[route.refuses]}}
        refused = {str(status): {"description": text, "content": refusal} for status, text in sorted(statuses.items())}
        operation: dict[str, Any] = {
            "operationId": operation_id(route),
            "summary": route.summary,
            "responses": {str(route.status): answer, **refused},
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
                for name in _PARAMETER.findall(route.path)
            ],
        }
        if route.takes is not None:
            body = {media: {"schema": schemas[route.takes]} for media in (JSON, MSGPACK, *route.medias)}
            operation["requestBody"] = {"required": True, "content": body}
        if route.scope is not None:
            operation["security"] = [{name: []} for name in schemes]
            operation["description"] = f"Needs a token with the scope `{route.scope}`."
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "rareswitch", "version": __version__},
        "paths": paths,
        "components": {"schemas": _readable(components), "securitySchemes": schemes},
    }


def _readable(schema: Any) -> Any:
    """A schema as readers of OpenAPI know it: null among the types, and lists with one type for all items.

    >>> _readable({"type": "array", "prefixItems": [{"type": "string"}] * 2, "items": False, "minItems": 2})
    {'type': 'array', 'items': {'type': 'string'}, 'minItems': 2}
    >>> _readable({"type": "number", "nullable": True})
    {'type': ['number', 'null']}
    """
    if isinstance(schema, list):
        return [_readable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _readable(part) for name, part in schema.items()}
    if parts.pop("nullable", False) is True:
        parts["type"] = [parts["type"], "null"]
    if isinstance(places := parts.get("prefixItems"), list):
        kinds = [kind for at, kind in enumerate(places) if kind not in places[:at]]
        del parts["prefixItems"]
        parts["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return parts


def operation_id(route: Route) -> str:
    """Names a route: ``post_decide``."""
    words = [word for word in _PARAMETER.sub("", route.path).split("/") if word and word != "v1"]
    of_one = ["of_one"] if route.path.endswith("}") else []
    return "_".join([route.method.lower(), *words, *of_one]).replace("-", "_").replace(".", "_")


def pages(routes: Sequence[Route]) -> tuple[Route, ...]:
    """Routes that describe these, and themselves."""

    async def document(call: Call, _: None) -> dict[str, Any]:
        """The routes of this service, as an OpenAPI document."""
        return description(tuple(routes))

    async def readable(call: Call, _: None) -> Response:
        """The routes of this service, as a page to read."""
        return HTMLResponse(_page(routes), headers=HEADERS)

    return (
        Route(method="GET", path="/openapi.json", scope=None, summary=str(document.__doc__), call=document, gives=dict),
        Route(method="GET", path="/docs", scope=None, summary=str(readable.__doc__), call=readable, media="text/html"),
        STATIC,
    )


def _page(routes: Sequence[Route]) -> str:
    """Each route, what it takes and gives, and the fields of these."""
    rows = "".join(
        f"<tr><td><code>{route.method} {escape(route.path)}</code></td><td>{route.scope or 'everyone'}</td>"
        f"<td>{escape(route.summary)}</td><td>{_link(route.takes)}</td><td>{_link(route.gives)}</td></tr>"
        for route in routes
    )
    structs = "".join(
        f'<h3 id="{kind.__name__}">{kind.__name__}</h3><p>{escape((getdoc(kind) or "").splitlines()[0])}</p>'
        '<ul class="api-types">'
        + "".join(f"<li><code>{field.name}</code>: {escape(_type_text(field.type))}</li>" for field in _fields(kind))
        + "</ul>"
        for kind in dict.fromkeys(map(_struct, _types(routes)))
    )
    head = "<tr><th>route</th><th>scope</th><th></th><th>takes</th><th>gives</th></tr>"
    style, icon = static_file("page.css")[2], static_file("icon.svg")[2]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>API · rareswitch</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="{icon}"><link rel="stylesheet" href="{style}"></head><body>'
        '<nav class="topbar" aria-label="Pages"><a class="home" href="/">rareswitch</a>'
        '<a href="/openapi.json">OpenAPI</a></nav><main><section><h1>Routes</h1><p>Bodies are JSON or MessagePack; '
        "errors under <code>/v1</code> have one form, <code>Refusal</code>.</p>"
        f'<table class="api">{head}{rows}</table></section><section><h2>Types</h2>{structs}</section></main>'
        "</body></html>"
    )


def _types(routes: Sequence[Route]) -> list[type[Any]]:
    return [kind for route in routes for kind in (route.takes, route.gives) if kind is not None]


def _struct(kind: Any) -> type[Any]:
    """The struct of a body that holds one, or a list of them."""
    return kind if isinstance(kind, type) else _struct(get_args(kind)[0])


def _fields(kind: type[Any]) -> Sequence[Any]:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else msgspec.structs.fields(kind)


def _type_text(kind: Any) -> str:
    return kind.__name__ if type(kind) is type else str(kind).replace("typing.", "")


def _link(kind: type[Any] | None) -> str:
    if kind is None or kind is dict:
        return ""
    name = _struct(kind).__name__
    return f'<a href="#{name}">{name}</a>'
