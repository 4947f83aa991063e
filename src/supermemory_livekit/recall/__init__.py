"""What a reply is shown of the caller's memory, and in which time."""
