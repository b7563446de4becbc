"""The APIs that are served: one module each, with the version-free messages of the API and its descriptor.

The version ranges are those a Kafka 4.3 broker serves for the same APIs (KIP-896 set the lower bounds).
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
"""The descriptors by API number, in order of these."""

API_BY_REQUEST: Mapping[type, Api] = MappingProxyType({api.request: api for api in APIS.values()})
"""The descriptors by the class of their requests."""
