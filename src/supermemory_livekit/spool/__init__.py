"""What is said, on disk until the service has it, and what a dead process left there."""
