"""Checks what the jobs wrote against what was sent: nothing lost, nothing repeated, nothing changed, money conserved.

`expectations` says what must hold for each job, `outputs` reads what it wrote, `rows`, `windows`, `keys` and `totals`
are the kinds of check, and `check` applies them. Outputs are read in batches; what is kept of a row is at most a hash.
"""
