"""The official SDK behind the `MemoryStore` protocol, in both of its generations."""
