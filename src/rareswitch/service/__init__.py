"""The service: experiments over HTTP, for any language."""

from rareswitch.service.app import COOKIE, MSGPACK, Limits, Route, Security, Service, make_app
from rareswitch.service.edge import EdgeHub, FrozenPolicy
from rareswitch.service.hub import BusyError, Hub, Together
from rareswitch.service.openapi import description
from rareswitch.service.routes import EDGE_ROUTES, ROUTES
from rareswitch.service.server import ServerSettings, application, read_settings, serve, service_of, tokens_path
from rareswitch.service.tokens import SCOPES, Token, Tokens

__all__ = ["COOKIE", "EDGE_ROUTES", "MSGPACK", "ROUTES", "SCOPES", "BusyError", "EdgeHub", "FrozenPolicy", "Hub"]
__all__ += ["Limits", "Route", "Security", "ServerSettings", "Service", "Together", "Token", "Tokens", "application"]
__all__ += ["description", "make_app", "read_settings", "serve", "service_of", "tokens_path"]
