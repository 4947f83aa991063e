"""What the tests share: a clock that jumps, sessions to talk to, jobs that end like real ones."""
