import os

import psutil
import pytest

from ledgerops.common.kafka import reach
from tests.refusals import refusal_of

pytestmark = pytest.mark.spark  # a JVM, though not Spark's

LIST = "org.apache.kafka.tools.TopicCommand"


def test_topics_are_not_made_by_naming_them(kafka):
    admin = reach(kafka.client)
    assert admin.list_topics("never-made", timeout=10).topics["never-made"].error is not None
    assert "never-made" not in admin.list_topics(timeout=10).topics


def test_its_jvm_has_the_options_of_the_variable_that_kafkas_own_scripts_read(kafka):
    assert {*os.environ["KAFKA_OPTS"].split()} <= {*psutil.Process(kafka.pid).cmdline()}


def test_kafkas_own_tools_speak_with_the_broker(kafka, topic):
    described = kafka.tool(LIST, "--bootstrap-server", kafka.servers, "--describe", "--topic", topic)
    assert f"Topic: {topic}" in described
    assert "PartitionCount: 5" in described


def test_a_tool_that_fails_says_why(kafka):
    tool = [LIST, "--bootstrap-server", kafka.servers, "--describe", "--topic", "never-made"]
    told = refusal_of(kafka.tool, *tool)
    assert told.startswith("TopicCommand failed: ") and "'never-made'" in told
