"""The paper's algorithms as printed, slow and plain: a second text beside the fast code, and what tests it."""
