"""What is shown to people: tables and pictures."""
