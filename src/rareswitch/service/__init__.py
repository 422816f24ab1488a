"""The service: experiments over HTTP, for any language."""

from rareswitch.service.app import *
from rareswitch.service.edge import *
from rareswitch.service.hub import *
from rareswitch.service.openapi import *
from rareswitch.service.page import *
from rareswitch.service.routes import *
from rareswitch.service.server import *
from rareswitch.service.tokens import *
