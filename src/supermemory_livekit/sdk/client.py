"""Which memory service to talk to: key, address and embedded mount become one client of the official SDK.

Everything is decided here, once, at construction: the SDK is always given a key and an address, so that it
never picks another host or another key from the environment by itself. Nothing is opened or sent.
"""

from __future__ import annotations

import ipaddress
import os
from typing import Any, Literal

import httpx
from supermemory import AsyncSupermemory

from supermemory_livekit.errors import ConfigurationError

__all__ = ["Client", "Setting", "SetupError", "is_embedded", "make_client"]

Setting = Literal["service", "address", "key", "platform key", "extra"]
"""What is wrong or missing: any way to a service, its address, the key that is set, the platform's key, a package."""

_HOSTED = "https://api.supermemory.ai"
_HEADERS = {"x-sm-source": "supermemory-livekit"}
_TIMEOUT = httpx.Timeout(10.0)
"""Seconds. Every call of the store brings its own deadline; this holds for direct use of the client."""
_LIMITS = httpx.Limits(max_connections=20, max_keepalive_connections=10, keepalive_expiry=60.0)
"""httpx drops idle connections after 5 s, less than a turn takes: each recall would shake hands anew."""
_PLACEHOLDER_KEY = "no-key"
"""The SDK insists on a key. A self-hosted service may run without one and ignores this."""


class SetupError(ConfigurationError):
    """A `ConfigurationError` that says which setting it is about, for those who put it in words of their own."""

    def __init__(self, setting: Setting, message: str) -> None:
        super().__init__(message)
        self.setting: Setting = setting


class Client(AsyncSupermemory):
    """Closes the HTTP client that was made for it; the SDK 5.x leaves open whatever it was given."""

    def __init__(
        self, *, http_client: httpx.AsyncClient, base_url: str, api_key: str, **options: Any
    ) -> None:
        super().__init__(http_client=http_client, base_url=base_url, api_key=api_key, **options)
        self._made_for_it = http_client
        self.address = httpx.URL(base_url)
        """Where the service answers."""
        self._authorization = {"authorization": f"Bearer {api_key}"}

    async def ask(self, method: str, path: str, body: object = None, *, timeout: float) -> httpx.Response:
        """What the service answers to a request that this SDK does not make. For a diagnosis.

        `timeout` in seconds, for each step of the request. Raises `httpx.HTTPError`.
        """
        return await self._made_for_it.request(
            method,
            f"{str(self.address).rstrip('/')}{path}",
            json=body,
            headers={**_HEADERS, **self._authorization},
            timeout=timeout,
        )

    async def close(self) -> None:
        await super().close()
        await self._made_for_it.aclose()


def is_embedded(address: str | None) -> bool:
    """Whether this address means the embedded service in this process."""
    address = (address or "").strip()
    return address == "local" or address.startswith("local:")


def make_client(api_key: str | None = None, base_url: str | None = None) -> Client:
    """The client for a key and an address; it never retries on its own and follows no redirect.

    `api_key` falls back to `SUPERMEMORY_API_KEY`, `base_url` to `SUPERMEMORY_BASE_URL`. `base_url` is an
    http(s) URL (the hosted platform when absent), `"local"` for the embedded service in this process, or
    `"local:PATH"` for the embedded service on that database file. Raises `SetupError`, or `ConfigurationError`
    for a value that is no string.
    """
    key = _checked_key(
        _given("api_key", api_key) or _given("SUPERMEMORY_API_KEY", os.environ.get("SUPERMEMORY_API_KEY"))
    )
    address = _given("base_url", base_url) or _given(
        "SUPERMEMORY_BASE_URL", os.environ.get("SUPERMEMORY_BASE_URL")
    )
    if address is not None and is_embedded(address):
        return _embedded(address[len("local:") :] or None)
    if key is None and address is None:
        raise SetupError(
            "service",
            "no memory service: pass api_key (or set SUPERMEMORY_API_KEY) for Supermemory's platform, pass"
            ' client for one you configured yourself, or pass base_url="local" (or set SUPERMEMORY_BASE_URL)'
            " for the embedded service, which needs no key",
        )
    url = _checked_url(address or _HOSTED)
    if key is None and url.host == httpx.URL(_HOSTED).host:
        raise SetupError(
            "platform key", "Supermemory's platform needs a key: pass api_key or set SUPERMEMORY_API_KEY"
        )
    return _client(key or _PLACEHOLDER_KEY, str(url), _http_client(url))


def _given(name: str, value: object) -> str | None:
    """The setting without surrounding blanks; None when it is absent or blank."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} takes a string, not {type(value).__name__}")
    return value.strip() or None


def _checked_key(key: str | None) -> str | None:
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise SetupError(
            "key", "api_key holds characters that no key has (a blank, a line break, a non-ASCII letter)"
        )
    return key


def _checked_url(address: str) -> httpx.URL:
    takes = 'base_url takes an http:// or https:// address, "local" or "local:PATH"'
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise SetupError("address", takes) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise SetupError("address", takes)
    if url.query or url.fragment or url.userinfo:
        raise SetupError("address", f"{takes}, without a user, a query or a fragment")
    return url


def _http_client(url: httpx.URL) -> httpx.AsyncClient:
    # Redirects are not followed: they would carry a caller's words to a host that nobody configured.
    # A proxy from the environment cannot reach this machine's own loopback, so that host is exempt from it.
    mounts: dict[str, httpx.AsyncBaseTransport | None] | None = None
    if _is_loopback(url.host):
        mounts = {f"all://[{url.host}]" if ":" in url.host else f"all://{url.host}": None}
    return httpx.AsyncClient(timeout=_TIMEOUT, limits=_LIMITS, follow_redirects=False, mounts=mounts)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _embedded(path: str | None) -> Client:
    try:
        # Imported here: the embedded service is an optional extra with dependencies of its own.
        from supermemory_livekit.local import open_local
    except ImportError as error:
        raise SetupError(
            "extra",
            f'base_url="local" needs the embedded service ({error.name} is missing): pip install'
            ' "supermemory-livekit[local]"',
        ) from None
    http_client = open_local(path)
    return _client("local", str(http_client.base_url), http_client)


def _client(key: str, base_url: str, http_client: httpx.AsyncClient) -> Client:
    return Client(
        api_key=key,
        base_url=base_url,
        http_client=http_client,
        timeout=_TIMEOUT,
        max_retries=0,
        default_headers=_HEADERS,
    )
