"""What is known of a checkpoint from its files, and what is said of one that cannot be read."""

import json
import re

import pytest

from ledgerops.checkpoint.batch_log import PARTITIONS
from ledgerops.checkpoint.reader import open_checkpoint
from ledgerops.checkpoint.summary import Selection, choose
from tests.checkpoint.fake import CONF, checkpoint, planned, put
from tests.refusals import refusal_of
from tests.tables import cases


def test_a_checkpoint_tells_its_query_batches_provider_and_operators(tmp_path):
    found = open_checkpoint(checkpoint(tmp_path / "q"))
    [operator] = found.operators
    [view] = operator.views

    assert (found.query_id, found.provider, found.kept, found.span) == ("id-q", "rocksdb", (0, 1, 2), "batches 0 to 2")
    assert (operator.id, operator.name, operator.partitions) == (0, "stateStoreSave", 2)
    assert (view.name, view.kind, view.options) == ("default", "store", {"storeName": "default"})


@pytest.mark.parametrize(
    ("name", "version"),
    [("stateStoreSave", 2), ("sessionWindowStateStoreSaveExec", None), ("dedupeWithinWatermark", None)],
)
def test_only_operators_whose_layout_has_versions_tell_one(tmp_path, name, version):
    found = open_checkpoint(checkpoint(tmp_path / "q", operator=name))
    assert found.operators[0].format_version(found.conf) == version


def test_a_batch_that_is_planned_but_not_committed_does_not_count(tmp_path):
    folder = checkpoint(tmp_path / "q")
    (folder / "commits" / "2").unlink()
    assert open_checkpoint(folder).kept == (0, 1)


def test_batches_whose_changes_are_gone_are_not_kept(tmp_path):
    found = open_checkpoint(checkpoint(tmp_path / "q", files=["2.zip", "2.changelog", "3.changelog"]))
    assert (found.kept, found.span) == ((1, 2), "batches 1 to 2")


def test_a_query_without_state_has_no_operators(tmp_path):
    assert open_checkpoint(checkpoint(tmp_path / "q", operator=None)).operators == ()


NO_KEYS = b'\x00\x02v2\x00\x00\x00\x01\x00\x1d{"type":"struct","fields":[]}\x00\x00\x00\x01'  # then the value's
BY_ID = NO_KEYS.replace(b"[]", b'[{"name":"id","type":"long","nullable":true,"metadata":{}}]')


def of_200(folder, operator, schema):
    """A checkpoint whose setting is 200 partitions, with files of partition 0."""
    path = checkpoint(folder, partitions=1, operator=operator, conf={**CONF, PARTITIONS: "200"})
    file = path / METADATA
    file.write_text(file.read_text().replace('"numPartitions": 1', '"numPartitions": 200'))
    if schema is not None:
        put(path / "state/0/0/_metadata/schema", schema)
    return path


@cases(
    "operator, schema",
    ("an aggregation without keys", "stateStoreSave", NO_KEYS),
    ("a limit", "globalLimit", BY_ID),
)
def test_where_all_rows_meet_in_one_task_there_is_one_partition_whatever_the_setting(tmp_path, operator, schema):
    found = open_checkpoint(of_200(tmp_path / "q", operator, schema))
    assert (found.operators[0].partitions, len(found.files), found.kept) == (1, 1, (0, 1, 2))


@pytest.mark.parametrize(
    "schema",
    [BY_ID, b"v2\n" + BY_ID + b"\n" + NO_KEYS, None],
    ids=["an aggregation by a key", "by a key and of nothing", "of which it is not known"],
)
def test_partitions_whose_folders_are_gone_are_missing(tmp_path, schema):
    path = of_200(tmp_path / "q", "stateStoreSave", schema)
    assert " is incomplete: operator 0, partition 1 has no state files in " in refusal_of(open_checkpoint, path)


@pytest.mark.parametrize(("before", "after"), [(2, 5), (5, 2)], ids=["more", "fewer"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_after_a_repartition_the_batches_since_are_kept_in_the_partitions_of_the_setting(
    tmp_path, before, after, version
):
    path = checkpoint(tmp_path / "q", batches=range(4), partitions=before)  # 2 moved the state, 3 came after it
    for batch in range(4):
        put(path / "offsets" / str(batch), planned(before if batch < 2 else after))
    for partition in range(after):
        put(path / "state/0" / str(partition) / "3.zip")
        put(path / "state/0" / str(partition) / "4.changelog")
    if version == "v2":  # the first version's metadata stay as they were
        _, _, text = (path / METADATA).read_text().partition("\n")
        (path / METADATA).unlink()
        for batch, partitions in ((0, before), (2, after)):
            noted = text.replace(f'"numPartitions": {before}', f'"numPartitions": {partitions}')
            put(path / "state/0/_metadata/v2" / str(batch), f"v2\n{noted}")

    found = open_checkpoint(path)
    assert (found.operators[0].partitions, len(found.files), found.kept) == (after, after, (2, 3))


HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


@pytest.mark.parametrize(("provider", "named"), [(HDFS, "hdfs"), ("com.example.OwnProvider", "OwnProvider")])
def test_the_provider_is_the_one_that_wrote(tmp_path, provider, named):
    conf = {"spark.sql.streaming.stateStore.providerClass": provider}
    assert open_checkpoint(checkpoint(tmp_path / "q", conf=conf)).provider == named


def test_variables_of_transform_with_state_are_views_with_their_type_and_ttl(tmp_path):
    folder = checkpoint(tmp_path / "q", operator="transformWithStateExec")
    (folder / "state" / "0" / "_metadata" / "metadata").unlink()
    variables = [
        {"stateName": "$procTimers_keyToTimestamp", "stateVariableType": "TimerState", "ttlEnabled": False},
        {"stateName": "last", "stateVariableType": "ValueState", "ttlEnabled": True},
        {"stateName": "all", "stateVariableType": "ListState", "ttlEnabled": False},
    ]
    for batch, shown in ((0, variables[1:2]), (1, variables), (9, [])):
        info = {
            "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateExec"},
            "stateStoreInfo": [{"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": ["file:/gone"]}],
            "operatorPropertiesJson": json.dumps({"stateVariables": shown}),
        }
        put(folder / "state" / "0" / "_metadata" / "v2" / str(batch), f"v2\n{json.dumps(info)}")

    [operator] = open_checkpoint(folder).operators  # of batch 1, the newest not after batch 2
    assert [(view.name, view.kind, view.ttl, view.counted) for view in operator.views] == [
        ("all", "list", False, True),
        ("last", "value", True, True),
        ("timers", "timers", False, False),
    ]


METADATA = "state/0/_metadata/metadata"
# files of a checkpoint and their content, None: they are gone -> what is said of it
BROKEN = {
    "nothing committed": (
        "commits/*", None, "{path} has no committed batch yet: there is no state to read; wait for the first batch",
    ),
    "plan is damaged": (
        "offsets/2", "v1\n{}", "cannot read {path}/offsets/2: not a planned batch as Spark 4 writes it; is it damaged?",
    ),
    "no operator metadata": (
        METADATA, None,
        "{path}/state/0 does not name its operator: it was written by Spark before 4.0, or is incomplete; "
        "run the query once on Spark 4",
    ),
    "operator metadata is damaged": (
        METADATA, "v1\n{",
        "cannot read {path}/state/0/_metadata/metadata (JSONDecodeError: Expecting property name enclosed in "
        "double quotes: line 1 column 2 (char 1)); the checkpoint is damaged",
    ),
    "newer metadata": (
        METADATA, "v3\n{}", "{path}/state/0/_metadata/metadata has version v3, which needs a newer ledgerops",
    ),
    "changes are missing": (
        "state/0/1/2.changelog", None,
        "{path} is incomplete: operator 0, partition 1 lacks files of version 3 or before in {path}/state/0/1; put "
        "them back from a backup, or start the query with a new checkpoint",
    ),
    "a partition is missing": (
        "state/0/1/*", None,
        "{path} is incomplete: operator 0, partition 1 has no state files in {path}/state/0/1; put them back from "
        "a backup, or start the query with a new checkpoint",
    ),
}  # fmt: skip


@cases(
    "changed",
    ("no store", {"stateStoreInfo": []}),
    ("no properties", {"operatorPropertiesJson": "[]"}),
    ("no number of partitions", {"stateStoreInfo": [{"storeName": "s", "numPartitions": 1e999}]}),
)
def test_operator_metadata_of_another_form_is_damaged(tmp_path, changed):
    path = checkpoint(tmp_path / "q")
    version, _, text = (path / METADATA).read_text().partition("\n")
    (path / METADATA).write_text(f"{version}\n{json.dumps(json.loads(text) | changed)}")
    said = refusal_of(open_checkpoint, path)
    assert re.fullmatch(r"cannot read .*/metadata \(\w+: .*\); the checkpoint is damaged", said)


@pytest.mark.parametrize(("files", "text", "said"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, files, text, said):
    path = checkpoint(tmp_path / "q")
    for file in list(path.glob(files)):
        file.unlink() if text is None else file.write_text(text)
    assert refusal_of(open_checkpoint, path) == said.format(path=path)


def test_what_is_no_checkpoint_is_said(tmp_path):
    put(tmp_path / "a.parquet")
    assert refusal_of(open_checkpoint, tmp_path / "absent") == f"no such folder: {tmp_path}/absent"
    assert refusal_of(open_checkpoint, tmp_path) == (
        f"{tmp_path} is not a checkpoint (it has no offsets and metadata); give the folder that the query uses as "
        "checkpointLocation"
    )


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Selection(operator=3), "no operator 3 in {path}; there are 0"),
        (Selection(batch=0), "no state of batch 0 in {path}; it has batches 1 to 2"),
        (Selection(since=7), "no state of batch 7 in {path}; it has batches 1 to 2"),
        (Selection(since=2), "--since 2 must be before batch 2, the one that is shown"),
        (Selection(store="defualt"), "no store 'defualt' in {path}; did you mean default? there are default"),
        (Selection(store="x"), "no store 'x' in {path}; there are default"),
    ],
    ids=["operator", "batch", "since a batch", "since itself", "a store nearly", "a store"],
)
def test_what_is_wanted_but_not_there_is_said_with_what_is(tmp_path, wanted, said):
    found = open_checkpoint(checkpoint(tmp_path / "q", files=["2.zip", "2.changelog", "3.changelog"]))
    assert refusal_of(choose, found, wanted) == said.format(path=tmp_path / "q")


def test_without_wishes_the_newest_batch_is_compared_with_the_oldest_and_one_alone_with_none(tmp_path):
    several, one = checkpoint(tmp_path / "q"), checkpoint(tmp_path / "one", batches=[0], files=["1.changelog"])
    choices = [choose(open_checkpoint(each), Selection()) for each in (several, one)]
    assert [(choice.batch, choice.since) for choice in choices] == [(2, 0), (0, None)]
