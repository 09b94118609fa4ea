"""What proves that batches take too long: one table for all that compare a batch with the time that it has.

A ratio is the duration of a batch over its trigger interval, or over the time in which its rows came.
"""

from __future__ import annotations

TREND_BATCHES = 5  # a trend over five batches is proof, one slow batch is not
MIN_TREND_BATCHES = 4  # of them that must agree
OVER_RATIO = 1.05  # that proves it over so many; nearer to 1 the start of a batch is only a matter of alignment
MIN_SHARE_OF_LONGEST = 0.8  # below this share of the longest, batches get shorter and the query is recovering
FAR_RATIO = 3.0  # that proves it
FAR_BATCHES = 2  # with so many in a row, the one that runs now included
FAR_SECONDS = 22.0  # that they add up to: two cold writes of 10 s at the start stay below it
HOPELESS_RATIO = 10.0  # from which on a single batch proves it
HOPELESS_SECONDS = 20.0
VERY_LONG_SECONDS = 20.0  # of every batch that has ended, the first included: where that takes time is worth a word
MIN_LAG_SECONDS = 10.0  # of a backlog that grows; a burst of 1.5 times the capacity for 20 s stays below it
MIN_PEAK_SHARE = 0.95  # below this share of its peak the backlog is shrinking
WORTH_SHARE = 1 / 3  # of a harmed query's batch: so much is worth removing first, whatever it takes to end the harm
