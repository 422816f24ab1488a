"""The service: experiments over HTTP, for any language."""

from rareswitch.service.app import COOKIE, MSGPACK, Limits, Route, Security, Service, make_app
from rareswitch.service.hub import BusyError, Hub, Together
from rareswitch.service.openapi import description
from rareswitch.service.routes import ROUTES
from rareswitch.service.server import Settings, application, read_settings, serve, service_of, tokens_path
from rareswitch.service.tokens import SCOPES, Token, Tokens

__all__ = ["COOKIE", "MSGPACK", "ROUTES", "SCOPES", "BusyError", "Hub", "Limits", "Route", "Security", "Service"]
__all__ += ["Settings", "Together", "Token", "Tokens", "application", "description", "make_app", "read_settings"]
__all__ += ["serve", "service_of", "tokens_path"]
