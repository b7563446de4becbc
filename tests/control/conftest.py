from collections.abc import AsyncIterator

import pytest_asyncio

from tests.control.support import Control, controlled


@pytest_asyncio.fixture
async def control() -> AsyncIterator[Control]:
    async with controlled() as made:
        yield made
