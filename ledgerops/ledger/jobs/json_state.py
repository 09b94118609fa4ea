"""What jobs share that keep rows as JSON text in their state."""

# the default would cut microseconds
JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
#: Keys of state that ids share: more than the partitions of a large cluster, fewer than the rows of a small batch.
STATE_KEYS = 256
#: What a transaction gets of its customer; the time of the version is added under another name.
CUSTOMER_COLUMNS = ("sex", "first", "last", "email", "city", "state", "district_id")
