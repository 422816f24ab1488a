"""The steps by which databases of earlier releases become those of this one; Alembic carries them out in order."""
