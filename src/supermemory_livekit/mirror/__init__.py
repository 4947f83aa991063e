"""The caller's memory in this process, searched without asking the service."""
