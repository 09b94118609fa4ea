import re
from dataclasses import fields

import pytest

from ledgerops.config import Config, check_variables, load
from tests.refusals import refusal_of
from tests.tables import cases


def test_without_anything_the_defaults_hold_whatever_the_machine_has_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEDGEROPS_PORT", "1")
    assert load(None, {}) == Config()


def test_the_file_is_overridden_by_variables_and_they_by_arguments(tmp_path):
    file = tmp_path / "ledgerops.toml"
    file.write_text('port = 1\nhost = "10.0.0.1"\nseries_per_query = 7\nexpected_queries = ["a", "b"]\n')

    config = load(file, {"LEDGEROPS_PORT": "2", "LEDGEROPS_HOST": "10.0.0.2"}, port=3)

    assert (config.port, config.host, config.series_per_query) == (3, "10.0.0.2", 7)
    assert config.expected_queries == ("a", "b")


def test_the_file_of_the_working_directory_is_found(tmp_path, monkeypatch):
    (tmp_path / "ledgerops.toml").write_text("port = 5\n")
    monkeypatch.chdir(tmp_path)
    assert load(None, {}).port == 5


def test_variables_of_other_parts_are_left_alone():
    assert load(None, {"LEDGEROPS_DATA": "somewhere", "HOME": "x"}) == Config()


@pytest.mark.parametrize(("text", "value"), [("true", True), ("ON", True), ("1", True), ("no", False), ("0", False)])
def test_switches_are_read_from_words(text, value):
    assert load(None, {"LEDGEROPS_TASKS_COLLECTOR": text}).tasks_collector is value


def test_a_list_is_read_from_commas():
    assert load(None, {"LEDGEROPS_EXPECTED_QUERIES": "a, b,"}).expected_queries == ("a", "b")


def test_an_argument_of_none_counts_as_not_given():
    assert load(None, {"LEDGEROPS_PORT": "4"}, port=None).port == 4


def test_a_path_may_be_given_for_text(tmp_path):
    assert load(None, {}, recording=tmp_path).recording == str(tmp_path)


@pytest.mark.parametrize("folder", ["/data/rec", "rec", "C:/data/rec", "runs/10:30/rec"])
def test_a_recording_is_a_path(folder):
    assert load(None, {}, recording=folder).recording == folder


@pytest.mark.parametrize("folder", ["file:///data/rec", "file:/data/rec"])
def test_a_recording_may_be_the_uri_of_a_folder_of_this_machine(folder):
    assert load(None, {}, recording=folder).recording == "/data/rec"


def test_whole_numbers_serve_as_seconds():
    assert load(None, {}, tasks_interval=3).tasks_interval == 3.0


@pytest.mark.parametrize("name", ["environ", "file"])
def test_what_is_no_setting_is_refused_as_an_argument_too(name):
    assert name in refusal_of(lambda: load(None, {}, **{name: {}}))


@cases(
    "content, message",
    ("wrong type", 'port = "x"', "{file}: port must be a whole number, not 'x'"),
    ("a switch is no number", "port = true", "{file}: port must be a whole number, not True"),
    ("not TOML", "port = ", "cannot read {file}: invalid value (at end of document)"),
    ("nested too deeply", f"port = {'[' * 9999}", "cannot read {file}: nested too deeply"),
    ("cannot be printed", f"port = 0x{'f' * 5000}", "{file}: port is too large"),
    ("no seconds", f"tasks_interval = 0x{'f' * 5000}", "{file}: tasks_interval is too large"),
    ("not a switch", "tasks_collector = 1", "{file}: tasks_collector must be true or false, not 1"),
    ("not texts", "expected_queries = [1]", "{file}: expected_queries must be a list of texts, not [1]"),
)
def test_a_bad_file_is_one_line_with_file_and_key(tmp_path, content, message):
    file = tmp_path / "my.toml"
    file.write_text(content)
    assert refusal_of(load, file, {}) == message.format(file=file)


@cases(
    "content, said",
    ("thousands of digits", f"port = {'9' * 5000}", r"cannot read .*: exceeds the limit .*4300 digits"),
    ("a misspelt key", "prot = 1", r".*my\.toml: no setting 'prot'; did you mean port\?"),
    ("a key like none", "colour = 1", r".*my\.toml: no setting 'colour'; the settings are app, basic_auth_.*po"),
)
def test_a_number_without_end_or_an_unknown_key_is_one_line(tmp_path, content, said):
    file = tmp_path / "my.toml"
    file.write_text(content)
    assert re.match(said, refusal_of(load, file, {}))


def test_the_table_of_render_may_stand_in_the_same_file(tmp_path):
    file = tmp_path / "ledgerops.toml"
    file.write_text("port = 5\n[render]\nselector = 'team=\"bank\"'\n")
    assert load(file, {}).port == 5


def test_a_variable_that_names_no_file_counts_as_not_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(None, {"LEDGEROPS_CONFIG": ""}) == Config()


def test_a_named_file_must_exist(tmp_path):
    assert "no such file" in refusal_of(load, tmp_path / "absent.toml", {})


NO_FOLDER = (
    "recording must be a folder of this machine, not '{}'; for an object store mount it, or copy the recording "
    "afterwards"
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"port": 70000}, "port must be between 0 and 65535, not 70000"),
        ({"host_interval": 0}, "host_interval must be above 0, not 0"),
        ({"tasks_interval": float("inf")}, "tasks_interval must be at most a year (31536000), not inf"),
        ({"watchdog_interval": 1e300}, "watchdog_interval must be at most a year (31536000), not 1e+300"),
        ({"freshness_objective_seconds": float("nan")}, "freshness_objective_seconds must be above 0, not nan"),
        ({"series_per_query": 0}, "series_per_query must be at least 1, not 0"),
        ({"tls_key": "k"}, "tls_key needs tls_certificate"),
        ({"basic_auth_user": "u"}, "set both basic_auth_user and basic_auth_password_file, or neither"),
        (
            {"kafka_servers": "a:1", "commit_group": "ledgerops"},
            "commit_group must contain {query}, not 'ledgerops': two queries in one group would overwrite each other's "
            "offsets",
        ),
        ({"commit_group": "{query}"}, "commit_group needs kafka_servers"),
        ({"kafka_config": "client.properties"}, "kafka_config needs kafka_servers"),
        ({"kafka_servers": "a:1", "kafka_interval": 0}, "kafka_interval must be above 0, not 0"),
        ({"recording": "s3a://bucket/rec"}, NO_FOLDER.format("s3a://bucket/rec")),
        ({"recording": "s3a://key:secret@bucket/rec"}, NO_FOLDER.format("s3a://bucket/rec")),
        ({"recording": "file://host/rec"}, NO_FOLDER.format("file://host/rec")),
        ({"otlp_endpoint": "a:4318"}, "otlp_endpoint must start with http:// or https://, not 'a:4318'"),
        ({"otlp_headers_file": "f"}, "otlp_headers_file needs otlp_endpoint"),
        ({"otlp_encoding": "xml"}, "otlp_encoding must be json or protobuf, not 'xml'"),
        ({"otlp_temporality": "gauge"}, "otlp_temporality must be cumulative or delta, not 'gauge'"),
        ({"otlp_interval": 0.0}, "otlp_interval must be above 0, not 0"),
    ],
)
def test_values_that_make_no_sense_are_refused(settings, message):
    assert refusal_of(load, None, {}, **settings) == message


@pytest.mark.parametrize("call", [lambda environ: load(None, environ), check_variables], ids=["load", "check"])
def test_a_variable_of_the_wrong_type_is_named(call):
    told = refusal_of(call, {"LEDGEROPS_PORT": "http"})
    assert told == "variable LEDGEROPS_PORT: port must be a whole number, not 'http'"


@pytest.mark.parametrize("setting", fields(Config), ids=lambda setting: setting.name)
def test_every_setting_is_described_in_a_sentence(setting):
    assert setting.metadata["doc"][0].isupper() and setting.metadata["doc"].endswith(".")


def test_a_group_for_the_offsets_holds_the_query():
    config = load(None, {}, kafka_servers="a:1,b:2", commit_group="ledgerops.{query}")
    assert (config.commit_group, config.kafka_interval) == ("ledgerops.{query}", 2.0)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("LEDGEROPS_PROT", "did you mean LEDGEROPS_PORT?"),
        ("LEDGEROPS_KAFKA_SERVER", "did you mean LEDGEROPS_KAFKA_SERVERS?"),
        ("LEDGEROPS_DATE", "did you mean LEDGEROPS_DATA?"),
        ("LEDGEROPS_XYZZY", "https://github.com/ledgerops/ledgerops/blob/main/docs/config.md lists the settings"),
    ],
)
def test_an_unknown_variable_is_reported_with_the_nearest_name(name, hint):
    assert check_variables({name: "1", "HOME": "x"}) == [f"variable {name} is unknown and ignored; {hint}"]


def test_known_variables_and_those_of_other_parts_are_not_reported():
    assert check_variables({"LEDGEROPS_PORT": "1", "LEDGEROPS_CONFIG": "x", "LEDGEROPS_DATA": "y", "PORT": "z"}) == []


def test_what_kubernetes_says_of_a_service_of_that_name_is_neither_a_setting_nor_reported():
    service = {
        "LEDGEROPS_PORT": "tcp://10.96.0.7:9464",
        "LEDGEROPS_PORT_9464_TCP": "tcp://10.96.0.7:9464",
        "LEDGEROPS_SERVICE_HOST": "10.96.0.7",
    }

    assert (check_variables(service), load(None, service)) == ([], Config())


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, "http://127.0.0.1:9464"),
        ({"port": 9564}, "http://127.0.0.1:9564"),
        ({"host": "0.0.0.0", "port": 80}, "http://127.0.0.1:80"),
        ({"host": "::"}, "http://[::1]:9464"),
        ({"host": "driver.example", "tls_certificate": "c.pem"}, "https://driver.example:9464"),
    ],
)
def test_the_address_of_the_exporter_follows_from_its_settings(settings, url):
    assert load(None, {}, **settings).url == url


def test_any_free_port_is_no_address():
    told = refusal_of(getattr, load(None, {}, port=0), "url")
    assert told == "port is set to 0, any free port; give the URL of the exporter"
