"""The fixture `helenus_server` of pytest, which the package registers by itself."""

import pytest

from . import Server


@pytest.fixture(scope="session")
def helenus_server():
    """A server in memory, one for all tests of a run; give each test a keyspace of its own."""
    with Server() as server:
        yield server
