"""Where deployments are kept."""

from rareswitch.store.folder import Deployment, Learned, check_fresh
from rareswitch.store.verification import Relearned, Verification

__all__ = ["Deployment", "Learned", "Relearned", "Verification", "check_fresh"]
