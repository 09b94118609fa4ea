"""The process of a drill's driver: `python -m ledgerops.drills.target FOLDER`."""

import sys
from pathlib import Path

from ledgerops.drills import BY_NAME
from ledgerops.drills.harness.target_app import main

if __name__ == "__main__":
    main(Path(sys.argv[1]), BY_NAME)
