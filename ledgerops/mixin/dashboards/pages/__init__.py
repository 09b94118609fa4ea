"""The dashboards, in the order in which people need them."""

from ledgerops.mixin.dashboards.pages import fleet, kafka, load, observer, query, resources, skew, slo, state

PAGES = (
    fleet.PAGE,
    query.PAGE,
    state.PAGE,
    skew.PAGE,
    resources.PAGE,
    kafka.PAGE,
    slo.PAGE,
    load.PAGE,
    observer.PAGE,
)
