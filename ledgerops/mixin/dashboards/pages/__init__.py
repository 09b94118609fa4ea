"""The dashboards, in the order in which people need them."""

from ledgerops.mixin.dashboards.pages import fleet, load, query, resources, slo, state

PAGES = (fleet.PAGE, query.PAGE, state.PAGE, slo.PAGE, resources.PAGE, load.PAGE)
