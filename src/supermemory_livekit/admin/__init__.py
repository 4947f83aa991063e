"""What the commands for operators do: `doctor` and `export`."""
