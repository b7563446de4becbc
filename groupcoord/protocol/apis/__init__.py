"""The APIs that are served, and their table APIS: one module each, with the version-free messages of the API and its Api.

The version ranges are those of a Kafka 4.3 broker (KIP-896 set the lower bounds).
"""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from groupcoord.protocol.api_descriptor import Api, ApiKey

__all__ = ["APIS", "API_BY_REQUEST", "Api", "ApiKey"]


def _descriptors() -> list[Api]:
    """``API`` of every module of this package."""
    return [import_module(f"{__name__}.{module.name}").API for module in pkgutil.iter_modules(__path__)]


APIS: Mapping[int, Api] = MappingProxyType({api.key: api for api in sorted(_descriptors(), key=lambda api: api.key)})
"""The APIs by API key, in order."""

API_BY_REQUEST: Mapping[type, Api] = MappingProxyType({api.request: api for api in APIS.values()})
"""The APIs by the class of their requests."""
