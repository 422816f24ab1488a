"""Durable experiments: records and ids in, decisions out, late rewards, and updates when they are due."""
