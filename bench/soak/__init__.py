"""A soak of storing calls: real sessions in worker processes, a service that fails, kills, and a count in the end.

    python -m bench.soak --help

`plan` draws everything from a seed, `worker` makes the calls, `proxy` does what `faults` draws to each request,
`processes` starts, kills and starts again, `truth` is what was spoken, `check` compares the documents with it.
"""
