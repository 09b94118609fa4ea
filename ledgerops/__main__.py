"""`python -m ledgerops` is the command line."""

import sys

from ledgerops.cli import main

sys.exit(main())
