"""Turns on their way to the service: what may be kept, the buffer, and the writer."""
