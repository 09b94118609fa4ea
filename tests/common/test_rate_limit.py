"""How often an address may be answered."""

from __future__ import annotations

import math

import pytest

from ledgerops.common.rate_limit import CPU_SECONDS_PER_ANSWER, MAX_ADDRESSES, MAX_BURST, RateLimit, network


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def admitted(limit, count, address="a"):
    return sum(limit.admit(address) for _ in range(count))


def test_after_its_burst_an_address_gets_so_many_a_second(clock):
    limit = RateLimit(10.0, clock)
    assert admitted(limit, MAX_BURST + 50) == MAX_BURST

    clock.now += 2.05
    assert admitted(limit, 50) == 20


def test_a_burst_is_saved_up_once_only(clock):
    limit = RateLimit(10.0, clock)
    clock.now += 3600.0

    assert admitted(limit, 3 * MAX_BURST) == MAX_BURST


def test_one_address_uses_up_nothing_of_another(clock):
    limit = RateLimit(10.0, clock)
    admitted(limit, 2 * MAX_BURST)

    assert admitted(limit, 2 * MAX_BURST, "b") == MAX_BURST


def test_an_answer_that_takes_long_counts_as_several(clock):
    limit = RateLimit(10.0, clock)
    admitted(limit, MAX_BURST)
    limit.charge("a", 21.0 * CPU_SECONDS_PER_ANSWER)

    clock.now += 2.0
    assert admitted(limit, 1) == 0
    clock.now += 0.15
    assert admitted(limit, 5) == 1


@pytest.mark.parametrize("seconds", [0.0, CPU_SECONDS_PER_ANSWER / 2, CPU_SECONDS_PER_ANSWER])
def test_an_answer_within_its_share_is_counted_once(clock, seconds):
    limit = RateLimit(10.0, clock)
    assert limit.admit("a")
    limit.charge("a", seconds)

    assert admitted(limit, 2 * MAX_BURST) == MAX_BURST - 1


def test_an_address_that_is_not_known_is_not_charged(clock):
    limit = RateLimit(10.0, clock)
    limit.charge("a", 100.0)

    assert admitted(limit, 2 * MAX_BURST) == MAX_BURST


def test_the_addresses_that_asked_longest_ago_are_forgotten(clock):
    limit = RateLimit(10.0, clock)
    admitted(limit, MAX_BURST)
    for number in range(MAX_ADDRESSES):
        limit.admit(str(number))

    assert len(limit._left) == MAX_ADDRESSES
    assert limit.admit("a")


def test_without_a_limit_every_request_is_admitted_and_none_remembered(clock):
    limit = RateLimit(math.inf, clock)

    assert admitted(limit, 10 * MAX_BURST) == 10 * MAX_BURST
    assert not limit._left


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:DB8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        pytest.param("::ffff:192.0.2.7", "192.0.2.7", id="IPv4 at a socket of both kinds"),
        pytest.param("::ffff:192.0.2.8", "192.0.2.8", id="another client of IPv4 there"),
        pytest.param("not:an:address", "not:an:address", id="none"),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address_and_one_of_ipv4_as_itself(host, counted):
    assert network(host) == counted
