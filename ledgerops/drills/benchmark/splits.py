"""The parts of a data set: seeds for development, for tests, and some that are held back until a result is in."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ledgerops.common.bounded_lines import numbered_lines
from ledgerops.drills.scoring.drawn_page import SEEN
from ledgerops.drills.scoring.report import table
from ledgerops.errors import UserError

SPLITS = DEVELOPMENT, TEST, HELD_BACK = "development", "test", "held-back"
MAX_DIGITS = 18  # of a seed
MIN_SALT_LETTERS = 16  # there are few seeds: with a short salt the hash can be tried out


class Splits(NamedTuple):
    """The salt of each seed that is held back; those that the rules have seen are for development. `reveal`: the data
    set is the one of the seeds that were held back."""

    salts: Mapping[int, str]
    reveal: bool

    def takes(self, seed: int) -> bool:
        """Whether the cases of a seed belong to this data set."""
        return (seed in self.salts) is self.reveal

    def of(self, seed: int) -> str:
        """The split of a seed."""
        if seed in self.salts:
            return HELD_BACK
        return DEVELOPMENT if seed in SEEN else TEST

    def named(self) -> list[dict[str, Any]]:
        """The seeds that are held back as the manifest names them: by their hash, and once revealed by themselves."""
        found = []
        for seed, salt in self.salts.items():
            sha256 = hashlib.sha256(f"{seed} {salt}".encode()).hexdigest()
            found.append({"sha256": sha256, **({"seed": seed, "salt": salt} if self.reveal else {})})
        return sorted(found, key=lambda each: each["sha256"])

    def summary(self, seeds: Sequence[int]) -> str:
        """A table of the splits. `seeds`: the seed of each case."""
        rows = []
        for split in SPLITS:
            some = [seed for seed in seeds if self.of(seed) == split]
            rows.append((split, ", ".join(map(str, sorted({*some}))), str(len(some))))
        if self.salts and not self.reveal:
            rows[-1] = (HELD_BACK, f"{len(self.salts)}, by their hashes in `manifest.json`", "not published yet")
        return table(("split", "seeds", "cases"), [row for row in rows if row[1]])


PUBLIC = Splits({}, reveal=False)


def splits(held_back: Path | None = None, reveal: bool = False) -> Splits:
    """The splits by a file with a line `SEED SALT` for each seed that is held back. Raises UserError for a file that
    cannot be read, and for a seed that cannot be held back."""
    if reveal and held_back is None:
        raise UserError("--reveal needs --held-back with the file of the seeds")
    salts: dict[int, str] = {}
    for number, line in numbered_lines(held_back) if held_back else ():
        seed, _, salt = line.decode("utf-8", "replace").strip().partition(" ")
        if not (seed.isdecimal() and seed.isascii() and len(seed) <= MAX_DIGITS and len(salt) >= MIN_SALT_LETTERS):
            raise UserError(
                f"cannot read {held_back}:{number}: expected a seed, a space and a salt of at least "
                f"{MIN_SALT_LETTERS} letters"
            )
        if int(seed) in (*SEEN, *salts):
            raise UserError(f"{held_back}:{number}: seed {seed} is known already; hold back another one")
        salts[int(seed)] = salt
    return Splits(salts, reveal)
