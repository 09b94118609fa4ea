"""What everything that speaks with Postgres shares: a URL without its password, names, an error in one line."""

from ledgerops.errors import UserError

NO_URL = "not the URL of a database; write postgresql://user:password@host:port/database"


def describe_url(url: str) -> str:
    """A Postgres URL for messages: user, host, port and database. UserError when it is none."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        known = conninfo_to_dict(url) if url.startswith(("postgresql://", "postgres://")) else {}
    except psycopg.Error:
        known = {}
    # a password with a bare @ ends up as part of the host
    if not known or "@" in str(known.get("host", "")):
        raise UserError(NO_URL)
    user = f"{known['user']}@" if known.get("user") else ""
    port = f":{known['port']}" if known.get("port") else ""
    return f"postgresql://{user}{known.get('host', '')}{port}/{known.get('dbname', '')}"


def quoted(*names: str) -> str:
    """Names of tables or columns, whatever they hold, as they stand in a statement: "a", "b"."""
    from psycopg.sql import Identifier

    return ", ".join(Identifier(name).as_string(None) for name in names)


def error_line(error: Exception) -> str:
    """The first line of what the driver says."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "the connection was lost")
