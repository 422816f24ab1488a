"""The paper shown claim by claim: each with its criterion, what was measured, and the verdict."""
