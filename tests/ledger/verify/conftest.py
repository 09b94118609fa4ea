"""What is found of an output."""

import pytest

from ledgerops.ledger.verify.check import VerifyInput, check
from ledgerops.ledger.verify.outputs import ParquetOutput
from tests.ledger.verify.made import Run, manifest_of

MANIFEST = manifest_of(poison={"invalid_json": 3, "tombstone": 2})


@pytest.fixture
def judged(tmp_path):
    """The result for a job whose output is `table`."""

    def judge(table, job="dedup_transactions", manifest=MANIFEST, **changes):
        Run(tmp_path, manifest).write(job, table)
        return check(job, ParquetOutput(tmp_path / "output" / job), VerifyInput(manifest, **changes))

    return judge
