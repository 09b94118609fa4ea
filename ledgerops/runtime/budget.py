"""The budget of series: what is left out of a query, and of a driver, so that Prometheus takes the rest.

Of the series by partition those of the worst partitions stay. Nothing of a family marked `unbudgeted` is left out:
sums and maxima of a query hold for all of its partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledgerops.metrics.model import Labels
from ledgerops.metrics.pressure import BACKLOG, LAG
from ledgerops.runtime.family import Family

RANKING = (BACKLOG.name, LAG.name)  # whose values say which partitions are worst, the first that there is


def fit_families(families: Sequence[Family], budget: int) -> tuple[list[Family], int]:
    """The families, the widest cut until there are at most `budget` series; and how many series were left out.

    Narrow families stay whole. The wide ones keep the same number of series, and those of equal labels the same ones.
    """
    free = [family for family in families if family.metric.unbudgeted]
    paid = [family for family in families if not family.metric.unbudgeted]
    total = sum(family.size for family in paid)
    if total <= budget:
        return list(families), 0
    limit = fair_limit([family.size for family in paid], budget)
    worst: dict[tuple[str, ...], set[Labels]] = {}
    kept = []
    for family in paid:
        if family.size <= limit:
            kept.append(family)
        elif family.histogram is None and limit > 0:
            keys = family.metric.labels
            if keys not in worst:
                worst[keys] = _worst([each for each in paid if each.metric.labels == keys], limit)
            chosen = tuple(item for item in family.series if item[0] in worst[keys])
            kept.append(family._replace(series=chosen))
    return [*free, *kept], total - sum(family.size for family in kept)


def fair_limit(sizes: Sequence[int], budget: int) -> int:
    """The largest size that each may have, where smaller ones leave their rest to the others."""
    limit, left = 0, budget
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        limit = left // (len(ordered) - index)
        if size > limit:
            break
        left -= size
    return max(0, limit)


def _worst(families: Sequence[Family], count: int) -> set[Labels]:
    """The labels of the largest values, oldest instants where the values are such; ties in the order of labels."""
    by_name = {family.metric.name: family for family in families}
    ranking = next((by_name[name] for name in RANKING if name in by_name), families[0])
    sign = 1.0 if ranking.metric.age else -1.0
    ranked = sorted(range(len(ranking.series)), key=lambda index: (sign * ranking.series[index][1], index))
    return {ranking.series[index][0] for index in ranked[:count]}
