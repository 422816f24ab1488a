"""Tables and pictures of what the laboratory brings back."""
