"""Rules that a person has muted, for one query or for all: the setting `mute`."""

from collections.abc import Iterable

from ledgerops.errors import UserError, did_you_mean

Muted = frozenset[tuple[str, str | None]]  # a rule's slug and a query, or None for every query
NOTHING: Muted = frozenset()


def read_muted(entries: Iterable[str], known: Iterable[str], strict: bool = True) -> Muted:
    """The entries `rule` and `rule:query` of the setting. `known` are the slugs of the rules.

    Raises UserError for a slug that no rule has, and for a colon without a query; when it is not `strict`, such an
    entry is left out.
    """
    slugs, muted = set(known), set()
    for entry in entries:
        slug, colon, query = (part.strip() for part in entry.partition(":"))
        if slug in slugs and (query or not colon):
            muted.add((slug, query or None))
        elif slug in slugs and strict:
            raise UserError(f"mute: {entry!r:.60} names no query; write {slug}:QUERY, or {slug} for every query")
        elif strict:
            hint = did_you_mean(slug, sorted(slugs), "`ledgerops rules` lists them")
            raise UserError(f"mute: no rule {slug!r:.60}; {hint}")
    return frozenset(muted)


def is_muted(muted: Muted, slug: str, query: str) -> bool:
    """Whether findings of a rule on a query are muted."""
    return (slug, None) in muted or (slug, query) in muted
