import pytest

from ledgerops.errors import UserError
from ledgerops.mixin.site import Site, duration, read_site


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "500ms"), (15, "15s"), (90, "90s"), (300, "5m"), (3600, "1h"), (259200, "3d")]
)
def test_a_duration_is_written_as_prometheus_writes_it(seconds, text):
    assert duration(seconds) == text


def test_windows_are_scaled_but_never_below_two_scrapes():
    site = Site(time_scale=0.1, scrape_seconds=2.0)

    assert (site.window(300), site.window(30)) == ("30s", "4s")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "ledgerops.toml"


def test_a_file_changes_what_it_names_and_nothing_else(file):
    file.write_text('[render]\njob = "spark"\nfreshness_seconds = 30\n')

    assert read_site(file) == Site(job="spark", freshness_seconds=30.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("freshness_objective = 0.9", "render: with freshness_objective 0.9 the fast burn alert could never fire "
         "(14.4 x the error budget is above 1); choose 0.94 or more"),
        ("freshness_objective = 1.0", "render: freshness_objective is a share below 1, not 1"),
        ("time_scale = 0", "render: time_scale must be above 0"),
        ("scrape_seconds = nan", "render: scrape_seconds must be above 0"),
        ("period_days = inf", "render: period_days must be at most 31536000, not inf"),
        ("time_scale = 1e300", "render: time_scale must be at most 31536000, not 1e+300"),
        (f"time_scale = 0x{'f' * 5000}", "{file}: render.time_scale is too large"),
        ("""job = 'x"'""", """render: job must not contain quotes, backslashes or line breaks: 'x"'"""),
        ("jobs = 'x'", "{file}: no setting 'render.jobs'; did you mean job?"),
        ("kubernetes_workers = 'spark'", "render: kubernetes_workers is application=Deployment,..., not 'spark'"),
        ("kubernetes_workers_max = 0", "render: kubernetes_workers_max must be above 0"),
        ("job = 3", "{file}: render.job must be text, not 3"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(file, text, message):
    file.write_text(f"[render]\n{text}\n")

    with pytest.raises(UserError) as refused:
        read_site(file)

    assert str(refused.value) == message.format(file=file)


def test_render_that_is_no_table_is_refused(file):
    file.write_text("render = 5")

    with pytest.raises(UserError, match="render must be a table"):
        read_site(file)
