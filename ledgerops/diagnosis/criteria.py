"""What proves that batches take too long: one table for all that compare a batch with the time that it has.

A ratio is the duration of a batch over its trigger interval, or over the time in which its rows came.
"""

from __future__ import annotations

# slightly over, as a trend
TREND_BATCHES = 5  # newest batches: one slow batch is no proof
MIN_TREND_BATCHES = 4  # of them must agree
OVER_RATIO = 1.05  # nearer to 1 only the alignment of batches differs
MIN_SHARE_OF_LONGEST = 0.8  # below this share of the longest, batches get shorter and the query is recovering

# far over
FAR_RATIO = 3.0
FAR_BATCHES = 2  # in a row, the running one included
FAR_SECONDS = 22.0  # that they add up to: two cold writes of 10 s at the start stay below it

# so far over that a single batch proves it
HOPELESS_RATIO = 10.0
HOPELESS_SECONDS = 20.0

# of every finished batch, the first included: from here on it is worth saying where the time goes
VERY_LONG_SECONDS = 20.0
MIN_LAG_SECONDS = 10.0  # of a growing backlog; a burst of 1.5 times the capacity for 20 s stays below it
MIN_PEAK_SHARE = 0.95  # below this share of its peak the backlog is shrinking
WORTH_SHARE = 1 / 3  # of a harmed query's batch: a cause of this size is worth removing first, whatever ends the harm
