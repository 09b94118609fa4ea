"""Load plans: what they may say, and what is said about a bad one."""

import math
from pathlib import Path

import pytest

from ledgerops.ledger.plan import plan as plan_module
from ledgerops.ledger.plan.phases import Burst, Constant, Ramp, Sine
from ledgerops.ledger.plan.plan import PLANS, load_plan, parse_plan
from ledgerops.ledger.plan.sections import POISON_KINDS, Keys, Late, Poison
from tests.refusals import refusal_of
from tests.tables import cases

ONE = "phases: [{shape: constant, rate: 10}]\n"
NO_DURATION = "expected a duration of at least 0.001 s (such as 30, 30s or 2 minutes)"


def phases(*lines):
    return "phases:\n" + "".join(f"  - {line}\n" for line in lines)


@pytest.mark.parametrize("name", PLANS)
def test_every_shipped_plan_is_read_and_says_what_it_is(name):
    plan = load_plan(name)
    assert (plan.name, plan.text[:2], plan.start) == (name, "# ", None)


def test_the_shipped_plans_are_the_files():
    assert sorted(PLANS) == sorted(file.stem for file in Path(plan_module.__file__).parent.glob("plans/*.yaml"))


def test_a_plan_may_say_no_more_than_its_phases():
    plan = parse_plan(ONE)
    assert plan.phases == (Constant(10, math.inf),)
    assert (plan.keys, plan.late.share, plan.duplicates.share, plan.partitions.count) == (Keys(), 0, 0, 5)


def test_every_shape_and_unit_is_understood():
    text = phases(
        "{shape: constant, rate: 800, duration: 10 minutes}",
        "{shape: ramp, from: 800, to: 1.5e3, duration: 90s}",
        "{shape: step, from: 100, to: 300, steps: 3, duration: 0.5h}",
        "{shape: sine, low: 0, high: 10, period: 500ms, duration: 1 day}",
        "{shape: burst, base: 1, peak: 1e3, every: 1m, length: 5}",
    )

    stairs = (Constant(100, 600), Constant(200, 600), Constant(300, 600))
    rest = (Sine(0, 10, 0.5, 86400), Burst(1, 1000, 60, 5, math.inf))
    assert parse_plan(text).phases == (Constant(800, 600), Ramp(800, 1500, 90), *stairs, *rest)


@pytest.mark.parametrize("shape", ["shape: ramp", "shape: step, steps: 2"])
def test_a_last_ramp_or_step_holds_its_final_rate_unless_the_plan_repeats(shape):
    last = parse_plan(phases(f"{{{shape}, from: 0, to: 50, duration: 5}}")).phases[-1]
    assert last == Constant(50, math.inf)
    repeated = parse_plan("repeat: true\n" + phases("{shape: ramp, from: 0, to: 50, duration: 5}"))
    assert repeated.phases == (Ramp(0, 50, 5),)


def test_scale_multiplies_every_rate_and_no_time():
    text = phases(
        "{shape: sine, low: 1, high: 3, period: 60, duration: 60}",
        "{shape: burst, base: 1, peak: 9, every: 8, length: 2}",
    )
    assert parse_plan("scale: 2\n" + text).phases == (Sine(2, 6, 60, 60), Burst(2, 18, 8, 2, math.inf))


def test_a_scale_given_beside_replaces_the_plans_own(tmp_path):
    (tmp_path / "mine.yaml").write_text("scale: 7\n" + ONE)
    scaled = load_plan(tmp_path / "mine.yaml", scale=3)
    assert scaled.phases == (Constant(30, math.inf),)
    assert parse_plan(scaled.text) == scaled


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("2026-01-31T12:00:00Z", 1769860800.0),
        ("'2026-01-31 13:00:00+01:00'", 1769860800.0),
        ("2026-01-31 12:00:00", 1769860800.0),
        ("2026-01-31", 1769817600.0),
    ],
)
def test_the_start_is_an_instant_or_a_day_in_utc_unless_it_says_otherwise(text, start):
    assert parse_plan(f"start: {text}\n{ONE}").start == start


@cases(
    "text, section, value",
    ("accounts follow the customers", "keys: {customers: 8000}", "keys", Keys(8000, 9000)),
    ("one delay", "disorder: {late: {share: 0.1, delay: fixed, low: 90s}}", "late", Late(0.1, "fixed", 90, 90)),
    ("poison of every kind", "poison: {share: 0.01}", "poison", Poison(0.01, POISON_KINDS)),
    ("poison of one kind", "poison: {share: 0.01, kinds: [tombstone]}", "poison", Poison(0.01, ("tombstone",))),
    ("no poison", "seed: 1", "poison", Poison()),
)
def test_what_a_section_leaves_out_is_filled_in(text, section, value):
    assert getattr(parse_plan(ONE + text), section) == value


def test_the_digest_is_that_of_the_meaning():
    one = parse_plan(ONE, "one")
    assert one.digest == parse_plan("# the same\nseed: 1\n" + ONE, "other").digest
    assert one.digest != parse_plan("seed: 2\n" + ONE, "one").digest


# what a plan says -> what is said of it, after the name of the file
@cases(
    "text, message",
    ("empty", "", "1: empty; a plan needs at least phases"),
    ("a list", "[1, 2]", "1: expected keys with values, got [1, 2]"),
    ("no phases", "seed: 1", "1: the key phases is missing"),
    ("empty phases", "phases: []", "1: phases: expected at least one phase with a rate above 0"),
    ("phases are no list", "phases: 12", "1: phases: expected a list, got 12"),
    ("a list that holds itself", "seed: &x [*x]",
     "1: seed: cannot read this value (found unconstructable recursive node)"),
    ("a list as key", "? [a, b]\n: 1", "1: a key must be a word"),
    ("not YAML", "seed: 1\nphases: [\n", "3: not YAML (expected the node content, but found '<stream end>')"),
    ("nested too deeply", "[" * 10_000, " not YAML (nested too deeply)"),
    ("a key twice", "seed: 1\nseed: 2\n" + ONE, "2: seed: this key was given before"),
    ("a rate in words", phases("{shape: constant, rate: 1, duration: 1}", "{shape: constant,\n     rate: fast}"),
     "4: phases[1].rate: expected a number >= 0, got 'fast'"),
    ("nothing ever comes", phases("{shape: constant, rate: 0}"),
     "2: phases: expected at least one phase with a rate above 0"),
    ("faster than anything", phases("{shape: constant, rate: 2e9}"),
     "2: phases: expected rates of at most 1,000,000,000 per second, including scale, got 2e+09"),
    ("no duration before the last", phases("{shape: constant, rate: 1}", "{shape: constant, rate: 1}"),
     "2: phases[0]: the key duration is missing (only the last phase may leave it out, when it is "
     "constant, sine or burst and the plan does not repeat)"),
    ("a count of repeats", "repeat: 2\n" + ONE, "1: repeat: expected true or false, got 2"),
    ("a seed in words", "seed: x\n" + ONE, "1: seed: expected a whole number from 0 to 9223372036854775807, got 'x'"),
)  # fmt: skip
def test_a_bad_plan_is_refused_in_one_line(text, message):
    assert refusal_of(parse_plan, text) == f"plan.yaml:{message}"


# the only phase of a plan -> what is said of it
@cases(
    "phase, message",
    ("a whole number beyond all floating ones", f"shape: constant, rate: 1{'0' * 400}",
     ".rate: expected a number >= 0, got inf"),
    ("a duration beyond all floating numbers", f"shape: constant, rate: 1, duration: 1{'0' * 400}",
     f".duration: {NO_DURATION}, got 1{'0' * 39}"),
    ("a duration in words", "shape: constant, rate: 1, duration: soon", f".duration: {NO_DURATION}, got 'soon'"),
    ("a rate below zero", "shape: constant, rate: -1", ".rate: expected a number >= 0, got -1"),
    ("an endless rate", "shape: constant, rate: .inf", ".rate: expected a number >= 0, got inf"),
    ("a rate that is no number", "shape: constant, rate: .nan", ".rate: expected a number >= 0, got nan"),
    ("a truth for a rate", "shape: constant, rate: true", ".rate: expected a number >= 0, got True"),
    ("a rate in quotes", "shape: constant, rate: '10'", ".rate: expected a number >= 0, got '10'"),
    ("misspelt key of a phase", "shape: constant, raet: 10",
     ".raet: unknown key (did you mean rate?); known here: shape, rate, duration"),
    ("a key of another shape", "shape: ramp, from: 1, to: 2, rate: 3, duration: 4",
     ".rate: unknown key; known here: shape, from, to, duration"),
    ("unknown shape", "shape: brust, base: 1",
     ".shape: expected one of constant, ramp, step, sine, burst; got 'brust' (did you mean burst?)"),
    ("no shape", "rate: 1", ": the key shape is missing"),
    ("a burst longer than its period", "shape: burst, base: 1, peak: 2, every: 5, length: 6",
     ".length: expected at most the value of every (5 s), got 6 s"),
    ("a sine upside down", "shape: sine, low: 5, high: 4, period: 6", ".high: expected a number >= 5, got 4"),
)  # fmt: skip
def test_a_bad_phase_is_refused_in_one_line(phase, message):
    assert refusal_of(parse_plan, phases(f"{{{phase}}}")) == f"plan.yaml:2: phases[0]{message}"


# what a plan says besides its phases -> what is said of it
@cases(
    "text, message",
    ("unknown key", "keyz: {}",
     "keyz: unknown key (did you mean keys?); known here: seed, start, scale, repeat, phases, "
     "keys, partitions, disorder, duplicates, amounts, poison, changes"),
    ("a start in words", "start: soon", "start: expected now or an instant such as 2026-01-31T12:00:00Z, got 'soon'"),
    ("a customer without account", "keys: {customers: 10, accounts: 9}",
     "keys.accounts: expected a whole number from 10 to 10000000, got 9"),
    ("a parameter of another distribution", "keys: {distribution: zipf, share: 0.5}",
     "keys.share: belongs to the distribution whale, and this one is zipf"),
    ("zipf rotates", "keys: {distribution: zipf, rotate: 30s}",
     "keys.rotate: belongs to the distribution whale, and this one is zipf"),
    ("all partitions idle", "partitions: {count: 2, idle: [0, 1]}",
     "partitions.idle: expected at least one partition that is not idle"),
    ("no such partition", "partitions: {idle: [5]}", "partitions.idle[0]: expected a whole number from 0 to 4, got 5"),
    ("idle and pinned", "partitions: {idle: [1], pinned: {partition: 1, share: 0.5}}",
     "partitions.pinned.partition: partition 1 is idle too"),
    ("the rest has nowhere to go", "partitions: {count: 1, idle: [], pinned: {partition: 0, share: 0.5}}",
     "partitions.pinned.share: expected 1, because there is no other busy partition"),
    ("a share in percent", "disorder: {late: {share: 1.5}}",
     "disorder.late.share: expected a number from 0 to 1, got 1.5"),
    ("a parameter of another delay", "disorder: {late: {share: 0.1, delay: exponential, low: 3}}",
     "disorder.late.low: unknown key; known here: share, delay, mean"),
    ("no order", "disorder: {}", "disorder: expected late or future, or both"),
    ("share and count", "disorder: {future: {share: 0.1, count: 1, ahead: 1h}}",
     "disorder.future: expected either share or count"),
    ("no distance", "disorder: {future: {count: 1}}", "disorder.future: the key ahead is missing"),
    ("mostly duplicates", "duplicates: {share: 0.9}", "duplicates.share: expected a number from 0 to 0.5, got 0.9"),
    ("conflicts in percent", "duplicates: {share: 0.1, conflicting: 25}",
     "duplicates.conflicting: expected a number from 0 to 1, got 25"),
    ("a maximum below the middle", "amounts: {median: 10, max: 5}",
     "amounts.max: expected a number from 10 to 1e+12, got 5"),
    ("an unknown poison", "poison: {share: 0.1, kinds: [null_keys]}",
     "poison.kinds[0]: expected one of invalid_json, missing_field, wrong_type, oversized, "
     "null_key, tombstone; got 'null_keys' (did you mean null_key?)"),
    ("poison of no kind", "poison: {share: 0.1, kinds: []}", "poison.kinds: expected at least one kind"),
    ("a poison twice", "poison: {share: 0.1, kinds: [tombstone, tombstone]}", "poison.kinds: expected each kind once"),
)  # fmt: skip
def test_a_bad_section_is_refused_in_one_line(text, message):
    assert refusal_of(parse_plan, ONE + text) == f"plan.yaml:2: {message}"


def test_an_unknown_name_lists_the_plans():
    assert refusal_of(load_plan, "wale") == (
        "no plan wale (did you mean whale?); give the path of a YAML file, or one of: "
        "burst, conflicting, default, diurnal, future, idle, late, late-flood, overload, pinned, rotating, whale, zipf"
    )


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "plan.yaml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8 text" in refusal_of(load_plan, tmp_path / "plan.yaml")


def test_errors_name_the_file_that_was_given(tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text("repeat: x\n" + ONE)
    assert refusal_of(load_plan, file) == f"{file}:1: repeat: expected true or false, got 'x'"
