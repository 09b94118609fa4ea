"""Load plans: what they may say, and what is said about a bad one."""

import math
from pathlib import Path

import pytest

from ledgerops.errors import UserError
from ledgerops.ledger.plan import plan as plan_module
from ledgerops.ledger.plan.phases import Burst, Constant, Ramp, Sine
from ledgerops.ledger.plan.plan import PLANS, load_plan, parse_plan
from ledgerops.ledger.plan.sections import POISON_KINDS, Keys, Late, Poison
from tests.refusals import refusal_of

ONE = "phases: [{shape: constant, rate: 10}]\n"


def phases(*lines):
    return "phases:\n" + "".join(f"  - {line}\n" for line in lines)


@pytest.mark.parametrize("name", PLANS)
def test_every_shipped_plan_is_read_and_says_what_it_is(name):
    plan = load_plan(name)
    assert plan.name == name
    assert plan.text.startswith("# ")
    assert plan.start is None


def test_the_shipped_plans_are_the_files():
    folder = Path(plan_module.__file__).parent / "plans"
    assert sorted(PLANS) == sorted(file.stem for file in folder.glob("*.yaml"))


def test_a_plan_may_say_no_more_than_its_phases():
    plan = parse_plan(ONE)
    assert plan.phases == (Constant(10, math.inf),)
    assert (plan.keys, plan.late.share, plan.duplicates.share, plan.partitions.count) == (Keys(), 0, 0, 5)


def test_every_shape_and_unit_is_understood():
    plan = parse_plan(
        phases(
            "{shape: constant, rate: 800, duration: 10 minutes}",
            "{shape: ramp, from: 800, to: 1.5e3, duration: 90s}",
            "{shape: step, from: 100, to: 300, steps: 3, duration: 0.5h}",
            "{shape: sine, low: 0, high: 10, period: 500ms, duration: 1 day}",
            "{shape: burst, base: 1, peak: 1e3, every: 1m, length: 5}",
        )
    )

    assert plan.phases == (
        Constant(800, 600),
        Ramp(800, 1500, 90),
        Constant(100, 600),
        Constant(200, 600),
        Constant(300, 600),
        Sine(0, 10, 0.5, 86400),
        Burst(1, 1000, 60, 5, math.inf),
    )


@pytest.mark.parametrize(
    "last", ["{shape: ramp, from: 0, to: 50, duration: 5}", "{shape: step, from: 0, to: 50, steps: 2, duration: 5}"]
)
def test_a_last_ramp_or_step_holds_its_final_rate(last):
    assert parse_plan(phases(last)).phases[-1] == Constant(50, math.inf)


def test_a_repeated_plan_holds_nothing():
    plan = parse_plan("repeat: true\n" + phases("{shape: ramp, from: 0, to: 50, duration: 5}"))
    assert plan.phases == (Ramp(0, 50, 5),)


def test_scale_multiplies_every_rate_and_no_time():
    text = phases(
        "{shape: sine, low: 1, high: 3, period: 60, duration: 60}",
        "{shape: burst, base: 1, peak: 9, every: 8, length: 2}",
    )

    assert parse_plan("scale: 2\n" + text).phases == (Sine(2, 6, 60, 60), Burst(2, 18, 8, 2, math.inf))


def test_a_scale_given_beside_replaces_the_plans_own(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("scale: 7\n" + ONE)

    scaled = load_plan(file, scale=3)

    assert scaled.phases == (Constant(30, math.inf),)
    assert parse_plan(scaled.text) == scaled


@pytest.mark.parametrize("start", ["2026-01-31T12:00:00Z", "'2026-01-31 13:00:00+01:00'", "2026-01-31 12:00:00"])
def test_the_start_is_an_instant_in_utc_unless_it_says_otherwise(start):
    assert parse_plan(f"start: {start}\n{ONE}").start == 1769860800.0


def test_a_start_may_be_a_day():
    assert parse_plan(f"start: 2026-01-31\n{ONE}").start == 1769817600.0


def test_accounts_follow_the_customers_unless_they_are_given():
    assert parse_plan(ONE + "keys: {customers: 8000}").keys.accounts == 9000


def test_a_fixed_delay_is_the_same_for_every_late_row():
    plan = parse_plan(ONE + "disorder: {late: {share: 0.1, delay: fixed, low: 90s}}")
    assert plan.late == Late(0.1, "fixed", 90, 90)


def test_poison_is_of_every_kind_unless_it_says_which():
    assert parse_plan(ONE).poison.share == 0
    assert parse_plan(ONE + "poison: {share: 0.01}").poison == Poison(0.01, POISON_KINDS)
    assert parse_plan(ONE + "poison: {share: 0.01, kinds: [tombstone]}").poison == Poison(0.01, ("tombstone",))


def test_the_digest_is_that_of_the_meaning():
    one = parse_plan(ONE, "one")
    assert one.digest == parse_plan("# the same\nseed: 1\n" + ONE, "other").digest
    assert one.digest != parse_plan("seed: 2\n" + ONE, "one").digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "plan.yaml:1: empty; a plan needs at least phases", id="empty"),
        pytest.param("[1, 2]", "plan.yaml:1: expected keys with values, got [1, 2]", id="a list"),
        pytest.param("seed: 1", "plan.yaml:1: the key phases is missing", id="no phases"),
        pytest.param(
            "phases: []", "plan.yaml:1: phases: expected at least one phase with a rate above 0", id="empty phases"
        ),
        pytest.param("phases: 12", "plan.yaml:1: phases: expected a list, got 12", id="phases are no list"),
        pytest.param(
            phases(f"{{shape: constant, rate: 1{'0' * 400}}}"),
            "plan.yaml:2: phases[0].rate: expected a number >= 0, got inf",
            id="a whole number beyond all floating ones",
        ),
        pytest.param(
            phases(f"{{shape: constant, rate: 1, duration: 1{'0' * 400}}}"),
            "plan.yaml:2: phases[0].duration: expected a duration of at least 0.001 s (such as 30, 30s or 2 minutes), "
            f"got 1{'0' * 39}",
            id="a duration beyond all floating numbers",
        ),
        pytest.param(
            "seed: &x [*x]",
            "plan.yaml:1: seed: cannot read this value (found unconstructable recursive node)",
            id="a list that holds itself",
        ),
        pytest.param("? [a, b]\n: 1", "plan.yaml:1: a key must be a word", id="a list as key"),
        pytest.param(
            "seed: 1\nphases: [\n",
            "plan.yaml:3: not YAML (expected the node content, but found '<stream end>')",
            id="not YAML",
        ),
        pytest.param("[" * 10_000, "plan.yaml: not YAML (nested too deeply)", id="nested too deeply"),
        pytest.param(
            ONE + "keyz: {}",
            "plan.yaml:2: keyz: unknown key (did you mean keys?); known here: seed, start, scale, repeat, phases, "
            "keys, partitions, disorder, duplicates, amounts, poison, changes",
            id="unknown key",
        ),
        pytest.param("seed: 1\nseed: 2\n" + ONE, "plan.yaml:2: seed: this key was given before", id="a key twice"),
        pytest.param(
            phases("{shape: constant, rate: 1, duration: 1}", "{shape: constant,\n     rate: fast}"),
            "plan.yaml:4: phases[1].rate: expected a number >= 0, got 'fast'",
            id="a rate in words",
        ),
        *(
            pytest.param(
                phases(f"{{shape: constant, rate: {text}}}"),
                f"plan.yaml:2: phases[0].rate: expected a number >= 0, got {told}",
                id=f"a rate of {text}",
            )
            for text, told in (("-1", "-1"), (".inf", "inf"), (".nan", "nan"), ("true", "True"), ("'10'", "'10'"))
        ),
        pytest.param(
            phases("{shape: constant, rate: 0}"),
            "plan.yaml:2: phases: expected at least one phase with a rate above 0",
            id="nothing ever comes",
        ),
        pytest.param(
            phases("{shape: constant, rate: 2e9}"),
            "plan.yaml:2: phases: expected rates of at most 1,000,000,000 per second, including scale, got 2e+09",
            id="faster than anything",
        ),
        pytest.param(
            phases("{shape: constant, raet: 10}"),
            "plan.yaml:2: phases[0].raet: unknown key (did you mean rate?); known here: shape, rate, duration",
            id="misspelt key of a phase",
        ),
        pytest.param(
            phases("{shape: ramp, from: 1, to: 2, rate: 3, duration: 4}"),
            "plan.yaml:2: phases[0].rate: unknown key; known here: shape, from, to, duration",
            id="a key of another shape",
        ),
        pytest.param(
            phases("{shape: brust, base: 1}"),
            "plan.yaml:2: phases[0].shape: expected one of constant, ramp, step, sine, burst; got 'brust' "
            "(did you mean burst?)",
            id="unknown shape",
        ),
        pytest.param(phases("{rate: 1}"), "plan.yaml:2: phases[0]: the key shape is missing", id="no shape"),
        pytest.param(
            phases("{shape: constant, rate: 1}", "{shape: constant, rate: 1}"),
            "plan.yaml:2: phases[0]: the key duration is missing (only the last phase may leave it out, when it is "
            "constant, sine or burst and the plan does not repeat)",
            id="no duration before the last",
        ),
        pytest.param(
            phases("{shape: constant, rate: 1, duration: soon}"),
            "plan.yaml:2: phases[0].duration: expected a duration of at least 0.001 s (such as 30, 30s or 2 minutes), "
            "got 'soon'",
            id="a duration in words",
        ),
        pytest.param(
            phases("{shape: burst, base: 1, peak: 2, every: 5, length: 6}"),
            "plan.yaml:2: phases[0].length: expected at most the value of every (5 s), got 6 s",
            id="a burst longer than its period",
        ),
        pytest.param(
            phases("{shape: sine, low: 5, high: 4, period: 6}"),
            "plan.yaml:2: phases[0].high: expected a number >= 5, got 4",
            id="a sine upside down",
        ),
        pytest.param(
            ONE + "start: soon",
            "plan.yaml:2: start: expected now or an instant such as 2026-01-31T12:00:00Z, got 'soon'",
            id="a start in words",
        ),
        pytest.param(
            "repeat: 2\n" + ONE, "plan.yaml:1: repeat: expected true or false, got 2", id="a count of repeats"
        ),
        pytest.param(
            ONE + "keys: {customers: 10, accounts: 9}",
            "plan.yaml:2: keys.accounts: expected a whole number from 10 to 10000000, got 9",
            id="a customer without account",
        ),
        pytest.param(
            ONE + "keys: {distribution: zipf, share: 0.5}",
            "plan.yaml:2: keys.share: belongs to the distribution whale, and this one is zipf",
            id="a parameter of another distribution",
        ),
        pytest.param(
            ONE + "partitions: {count: 2, idle: [0, 1]}",
            "plan.yaml:2: partitions.idle: expected at least one partition that is not idle",
            id="all partitions idle",
        ),
        pytest.param(
            ONE + "partitions: {idle: [5]}",
            "plan.yaml:2: partitions.idle[0]: expected a whole number from 0 to 4, got 5",
            id="no such partition",
        ),
        pytest.param(
            ONE + "partitions: {idle: [1], pinned: {partition: 1, share: 0.5}}",
            "plan.yaml:2: partitions.pinned.partition: partition 1 is idle too",
            id="idle and pinned",
        ),
        pytest.param(
            ONE + "partitions: {count: 1, idle: [], pinned: {partition: 0, share: 0.5}}",
            "plan.yaml:2: partitions.pinned.share: expected 1, because there is no other busy partition",
            id="the rest has nowhere to go",
        ),
        pytest.param(
            ONE + "disorder: {late: {share: 1.5}}",
            "plan.yaml:2: disorder.late.share: expected a number from 0 to 1, got 1.5",
            id="a share in percent",
        ),
        pytest.param(
            ONE + "disorder: {late: {share: 0.1, delay: exponential, low: 3}}",
            "plan.yaml:2: disorder.late.low: unknown key; known here: share, delay, mean",
            id="a parameter of another delay",
        ),
        pytest.param(
            ONE + "duplicates: {share: 0.9}",
            "plan.yaml:2: duplicates.share: expected a number from 0 to 0.5, got 0.9",
            id="mostly duplicates",
        ),
        pytest.param(
            ONE + "amounts: {median: 10, max: 5}",
            "plan.yaml:2: amounts.max: expected a number from 10 to 1e+12, got 5",
            id="a maximum below the middle",
        ),
        pytest.param(
            ONE + "poison: {share: 0.1, kinds: [null_keys]}",
            "plan.yaml:2: poison.kinds[0]: expected one of invalid_json, missing_field, wrong_type, oversized, "
            "null_key, tombstone; got 'null_keys' (did you mean null_key?)",
            id="an unknown poison",
        ),
        pytest.param(
            ONE + "poison: {share: 0.1, kinds: []}",
            "plan.yaml:2: poison.kinds: expected at least one kind",
            id="poison of no kind",
        ),
        pytest.param(
            ONE + "poison: {share: 0.1, kinds: [tombstone, tombstone]}",
            "plan.yaml:2: poison.kinds: expected each kind once",
            id="a poison twice",
        ),
    ],
)
def test_a_bad_plan_is_refused_in_one_line(text, message):
    assert refusal_of(parse_plan, text) == message


def test_an_unknown_name_lists_the_plans():
    assert refusal_of(load_plan, "wale") == (
        "no plan wale (did you mean whale?); give the path of a YAML file, or one of: "
        "burst, conflicting, default, diurnal, future, idle, late, late-flood, overload, pinned, rotating, whale, zipf"
    )


def test_a_file_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8 text"):
        load_plan(file)


def test_errors_name_the_file_that_was_given(tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text("seed: x\n" + ONE)

    assert (
        refusal_of(load_plan, file) == f"{file}:1: seed: expected a whole number from 0 to 9223372036854775807, got 'x'"
    )
