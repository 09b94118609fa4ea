"""The alerts about `ledgerops notify` itself, from its own metrics: a sender fails, messages are late, lost or absent.

They go to the receiver `direct` as well, for notify cannot report that it is down.
"""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.site import Site

FAILING_WINDOW_SECONDS, GAVE_UP_WINDOW_SECONDS = 600.0, 3600.0
MIN_FAILED = 2  # attempts within the window: the next one follows the first after five seconds
MAX_WAITING_SECONDS = 900.0  # for which a message may wait: five attempts have failed by then
REMEMBERED_SECONDS = 12 * 3600.0  # for so long a notify that is no longer a target is missed
BY = "by (job, instance, sender)"
JOB, HERE = "ledgerops-notify", "notify:9465"
FAILED, DELIVERED, GIVEN_UP, OLDEST = (
    of(f"ledgerops_notify_{name}", job=JOB, instance=HERE, sender="slack 1")
    for name in ("failed_total", "delivered_total", "given_up_total", "oldest_waiting_seconds")
)
UP, UP_ELSEWHERE = (of("up", job=JOB, instance=instance) for instance in (HERE, "b"))

FAILING_RUNBOOK = """A sender of notify fails: none of its messages has been delivered for ten minutes.

Meaning: every attempt of `ledgerops notify` to deliver through this sender failed. Other senders are not delayed by it.
Impact: whoever relies on this sender is not notified. Messages wait in the queue and are retried for a day.
Diagnosis: 1. notify's log names the error of each attempt: an HTTP status means that the service refuses the message
    (401, 403 or 404: the URL or its token is no longer valid); a timeout or a refused connection means that the service
    or the network is down.
    2. `ledgerops_notify_waiting{sender="SENDER"}` is the number of waiting messages.
    3. On notify's host run `ledgerops notify --senders FILE --test QUERY`: it sends one message at once and prints each
    failure.
Mitigation: renew the URL in the file of `--senders` and restart notify; what the file of `--queue` holds is sent then,
    where it outlives the process (an emptyDir does not outlive its pod). If the service is down, replace its URL by
    that of another service: the waiting messages go there.
"""
LATE_RUNBOOK = """Notifications are late: a message has been waiting for more than a quarter of an hour.

Meaning: `ledgerops notify` accepted an alert and has not been able to deliver it through this sender since.
Impact: someone who should have been notified has not been. The message is dropped after a day.
Diagnosis: 1. Alertmanager's list of alerts shows what is firing now.
    2. `increase(ledgerops_notify_failed_total{sender="SENDER"}[10m])` above 0 means that the service refuses the
    messages or is down; notify's log has the error.
    3. If it is 0 and `ledgerops_notify_waiting` grows, notify cannot keep up, or cannot write its queue; its log says
    which, and `df` shows whether the disk is full.
Mitigation: act on the firing alerts first. Then repair the sender, or replace its URL in the file of `--senders` and
    restart notify: the waiting messages go to the new sender.
"""
GAVE_UP_RUNBOOK = """Notifications were given up: messages could not be delivered for a day.

Meaning: a sender failed for 24 hours, and its oldest messages were dropped.
Impact: through this sender, nobody was notified of these alerts. Alerts that are still firing are sent again.
Diagnosis: 1. `increase(ledgerops_notify_given_up_total{sender="SENDER"}[1d])` is the number of lost messages.
    2. notify's log names the incidents, and the error of each attempt.
    3. `ALERTS{alertstate="firing"}` over the last day shows what the messages were about.
Mitigation: check which of these alerts still need action. Then repair or remove the sender, and restart notify.
"""
ABSENT_RUNBOOK = """Notify absent: no `ledgerops notify` answers Prometheus, although one is, or recently was, a target.

Meaning: the process that turns alerts into messages is down, or Prometheus cannot reach it.
Impact: alerts that go through notify reach nobody. Alertmanager repeats them, so they arrive once notify is back.
Diagnosis: 1. Alertmanager's list of alerts shows what is firing now.
    2. `curl http://HOST:9465/healthz` on notify's host: an answer means that only Prometheus cannot reach it (network,
    or a token for /metrics).
    3. Without an answer, the end of notify's log says why it stopped, such as a full disk or a port in use.
Mitigation: start notify again on the same `--queue`: what it had accepted is still delivered. If it was removed on
    purpose, silence the alert; it ends 12 hours after the last scrape.
"""


def _failing(site: Site) -> str:
    window = site.window(FAILING_WINDOW_SECONDS)
    failed, delivered = (
        f"sum {BY} (increase({site.notify_series(f'ledgerops_notify_{name}_total')}[{window}]))"
        for name in ("failed", "delivered")
    )
    return f"{failed} >= {MIN_FAILED} unless {delivered} > 0"


def _absent(site: Site) -> str:
    up = site.notify_series("up")
    known = f"last_over_time({up}[{site.window(REMEMBERED_SECONDS)}])"
    return f"count by (job) ({known}) unless on (job) ({up} == 1)"


def _gave_up(site: Site) -> str:
    given_up = site.notify_series("ledgerops_notify_given_up_total")
    return f"sum {BY} (increase({given_up}[{site.window(GAVE_UP_WINDOW_SECONDS)}])) > 0"


FAILING = Alert(
    name="LedgerNotifySenderFailing", severity="warning", expression=_failing, hold=60.0,
    summary="A sender of notify delivers nothing.",
    description="{{ $labels.sender }} of {{ $labels.instance }} has delivered nothing for ten minutes; "
    '{{ $value | printf "%.0f" }} attempts failed.',
    runbook=FAILING_RUNBOOK, page="ledgerops-fleet", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "every attempt fails", {FAILED: "0x8 0+1x12 12x28", DELIVERED: "0x48"}, 500, True),
        Case("stays quiet", "one attempt failed", {FAILED: "0x8 1x40", DELIVERED: "0x48"}, 500, False),
        Case("stays quiet", "others were delivered", {FAILED: "0x8 0+1x40", DELIVERED: "0+1x48"}, 500, False),
        Case("stays quiet", "another sender delivers nothing", {FAILED: "0x48", DELIVERED: "0x48"}, 500, False),
        Case("resolves", "it delivers again", {FAILED: "0x8 0+1x20 20x60", DELIVERED: "0x40 0+1x48"}, 1000, False),
        Case("series vanishes", "notify ended", {FAILED: "0x8 0+1x20 stale", DELIVERED: "0x28 stale"}, 1600, False),
    ),
)  # fmt: skip
LATE = Alert(
    name="LedgerNotifyLate", severity="critical", hold=30.0,
    expression=lambda site: (
        f"max {BY} ({site.notify_series('ledgerops_notify_oldest_waiting_seconds')}) > {MAX_WAITING_SECONDS:g}"
    ),
    summary="A message has been waiting for delivery for 15 minutes.",
    description="The oldest message for {{ $labels.sender }} of {{ $labels.instance }} has been waiting for "
    "{{ $value | humanizeDuration }}.",
    runbook=LATE_RUNBOOK, page="ledgerops-fleet", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "a message waits for longer", {OLDEST: "0x8 0+15x80"}, 1200, True),
        Case("stays quiet", "it waits for less", {OLDEST: "0x8 0+15x50 0x30"}, 960, False),
        Case("resolves", "it was delivered", {OLDEST: "0x8 0+15x70 0x40"}, 1500, False),
        Case("series vanishes", "notify ended", {OLDEST: "0+15x70 stale"}, 1400, False),
    ),
)  # fmt: skip
GAVE_UP = Alert(
    name="LedgerNotifyGaveUp", severity="warning", expression=_gave_up, hold=30.0,
    summary="Messages were dropped after a day of failed attempts.",
    description="{{ $labels.sender }} of {{ $labels.instance }} gave up "
    '{{ $value | printf "%.0f" }} messages within an hour.',
    runbook=GAVE_UP_RUNBOOK, page="ledgerops-fleet", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "one was too old", {GIVEN_UP: "0x8 1x40"}, 300, True),
        Case("stays quiet", "none was", {GIVEN_UP: "0x48"}, 500, False),
        Case("resolves", "an hour later", {GIVEN_UP: "0x8 1x300"}, 4200, False),
        Case("series vanishes", "notify ended", {GIVEN_UP: "0x8 1x20 stale"}, 4200, False),
    ),
)  # fmt: skip
ABSENT = Alert(
    name="LedgerNotifyAbsent", severity="critical", expression=_absent, hold=60.0,
    summary="Alerts are not delivered: notify does not answer.",
    description="No target of the scrape job {{ $labels.job }} has answered for a minute.", runbook=ABSENT_RUNBOOK,
    page="ledgerops-fleet", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "it does not answer", {UP: "1x8 0x40"}, 300, True),
        Case("fires", "it never answered", {UP: "0x48"}, 300, True),
        Case("stays quiet", "one of two answers", {UP: "0x48", UP_ELSEWHERE: "1x48"}, 300, False),
        Case("stays quiet", "it misses one scrape", {UP: "1x8 0x1 1x40"}, 180, False),
        Case("stays quiet", "there is no notify", {"up": "1x48"}, 300, False),
        Case("resolves", "it answers again", {UP: "1x8 0x20 1x40"}, 700, False),
        Case("series vanishes", "it is no target any more", {UP: "1x8 stale"}, 400, True),
    ),
)  # fmt: skip
