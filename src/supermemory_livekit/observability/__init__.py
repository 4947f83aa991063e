"""What happens to a memory, as spans, metrics and events."""
