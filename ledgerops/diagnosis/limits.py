"""Limits that several questions share, each with one meaning. What only one module asks stands there."""

SHOWN_BATCHES = 5  # newest batches that show how it is now
LOOKBACK_BATCHES = 60  # newest batches that are searched: in a busy driver only few have their tasks read
MIN_BATCHES = 2  # that must agree before anything is said

MIN_SECONDS = 0.5  # of a batch; less is within the noise of a few batches
LONG_SECONDS = 1.0  # of a batch, from which its time is worth a look
VERY_LONG_SECONDS = 20.0  # of a batch, the first included: more proof would take minutes
MAX_SAMPLE_AGE_SECONDS = 25.0  # age of a sample; with one every 10 s the newest is younger
MIN_CATCH_UP_SECONDS = 5.0  # of lag: a smaller one is no backlog to catch up on

NOISE_SHARE = 0.1  # of a batch, its rows or its time; less is within the noise of a few batches
WORTH_SHARE = 1 / 3  # of a batch: a cause of this size is worth removing first, whatever ends the harm
MOSTLY = 0.5  # of a whole: what has more than this is most of it
NEARLY_ALL = 0.8  # of a whole

CLEAR_TIMES = 2.0  # the usual, or a limit: from there on a number is no longer a matter of chance
VERY_FAR_TIMES = 10.0  # the usual: no burst, hiccup or warm-up makes it so long
FAR_TIMES = 3.0  # the usual: a loaded machine, a garbage collection or a burst makes it twice as long, but not so long

# of the time looked back on, how far a growth is drawn ahead: kubernetes-mixin's KubePersistentVolumeFillingUp looks 4
# days ahead from 6 hours
MAX_AHEAD_RATIO = 16.0
