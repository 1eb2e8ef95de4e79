"""What crosses into the core as columns, and what comes back."""
