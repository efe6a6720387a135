"""Which names of a machine only the machine itself can be meant by."""

__all__ = ["LOCAL", "host_is_local", "origin_is_local"]

LOCAL = ("127.0.0.1", "localhost", "[::1]")


def host_is_local(host: str) -> bool:
    """Say whether the Host header of a request names this machine, with or without a port.

    Examples
    --------
    >>> host_is_local("localhost:8000"), host_is_local("example.org")
    (True, False)
    """
    return host in LOCAL or host.rpartition(":")[0] in LOCAL


def origin_is_local(origin: str | None) -> bool:
    """Say whether a request comes from no page at all, or from a page of this machine.

    Examples
    --------
    >>> origin_is_local(None), origin_is_local("http://[::1]:80"), origin_is_local("null")
    (True, True, False)
    """
    return origin is None or host_is_local(origin.partition("://")[2])
