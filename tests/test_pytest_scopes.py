"""The fixtures of wider scopes, the factories and event loops, in a pytest of their own."""

import pytest

import groupcoord.testing  # noqa: F401 - else each inner pytest would import it anew

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.slow, pytest.mark.untraced]


def told(pytester: pytest.Pytester, text: str, *options: str, ini: str = "", conftest: str = "") -> pytest.RunResult:
    """What a pytest within this one says of a test file; a warning is an error there."""
    if "no:asyncio" not in options:
        ini += "\nasyncio_default_fixture_loop_scope = function"
    pytester.makefile(".ini", pytest=f"[pytest]\n{ini}\n")
    pytester.makeconftest(conftest)
    pytester.makepyfile(test_it=text)
    usual = ("-p", "no:randomly", "-p", "no:cacheprovider", "-W", "error")
    result = pytester.runpytest_inprocess(*usual, *options)
    assert "INTERNALERROR" not in result.stdout.str()
    return result


def errors(result: pytest.RunResult) -> list[str]:
    """Which tests had an error beside themselves, in their set-up or after their end."""
    return [line.partition("::")[2].partition(" ")[0] for line in result.outlines if line.startswith("ERROR test_it")]


SHARED = """
import pytest

pytestmark = pytest.mark.kafka(topics={"orders": 2})
ADDRESSES = set()

async def use(kafka):
    ADDRESSES.add(kafka.address)
    assert len(ADDRESSES) == 1
    assert await kafka.list_groups() == []
    assert await kafka.records("orders", 0) == []
    assert "invoices" not in kafka.core.broker.topics
    await kafka.create_topic("invoices")
    await kafka.produce("orders", b"an espresso")
    await kafka.consumers(1, group="app", topics="orders")
    kafka.faults.when("DeleteGroups").drop()

@pytest.mark.asyncio(loop_scope="module")
async def test_first(kafka_module):
    await use(kafka_module)

@pytest.mark.asyncio(loop_scope="module")
async def test_fails(kafka_module):
    await use(kafka_module)
    assert False, "because"

@pytest.mark.asyncio(loop_scope="module")
async def test_last(kafka_module):
    await use(kafka_module)

@pytest.mark.asyncio
async def test_one_of_its_own(kafka):
    assert kafka.address not in ADDRESSES
    assert await kafka.records("orders", 0) == []
"""

SHARED_SYNCHRONOUSLY = (
    SHARED.replace("async def", "def")
    .replace("await ", "")
    .replace('@pytest.mark.asyncio(loop_scope="module")\n', "")
    .replace("@pytest.mark.asyncio\n", "")
    .replace("kafka_module", "kafka_sync_module")
    .replace("test_one_of_its_own(kafka)", "test_one_of_its_own(kafka_sync)")
    .replace("    assert kafka.address not in ADDRESSES\n    assert kafka", "    assert kafka_sync")
)


@pytest.mark.parametrize("text", [SHARED, SHARED_SYNCHRONOUSLY], ids=["asynchronous", "synchronous"])
def test_a_cluster_of_a_module_is_checked_and_reset_after_each_test(pytester: pytest.Pytester, text: str) -> None:
    result = told(pytester, text)
    result.assert_outcomes(passed=3, failed=1, errors=2)
    assert errors(result) == ["test_first", "test_last"]  # after a failure, rules that were not used are no news
    result.stdout.fnmatch_lines(["*rule 1 never acted: when(DeleteGroups).drop()"])
    told_of = ["*what happened on the broker*", "  app Stable gen=1, 1 member: app-1", "  rule 1 never acted: *"]
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_first*", *told_of])
    result.stdout.fnmatch_lines(["*because*", *told_of])


def test_what_was_told_after_a_test_is_not_told_again_at_the_end(pytester: pytest.Pytester) -> None:
    text = """
import pytest

@pytest.mark.asyncio(loop_scope="session")
async def test_first(kafka_session, kafka_sync_session):
    kafka_session.faults.when("DeleteGroups").drop()
    kafka_sync_session.faults.when("DeleteGroups").drop()

def test_unrelated():
    pass
"""
    result = told(pytester, text)
    result.assert_outcomes(passed=2, errors=1)
    assert errors(result) == ["test_first"]


def test_a_shared_cluster_that_is_asked_for_by_name_in_the_test_is_reset_too(pytester: pytest.Pytester) -> None:
    text = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_it(request, number):
    kafka = request.getfixturevalue("kafka_sync_session")
    kafka.create_topic("invoices")
    if number == 2:
        kafka.faults.when("Heartbeat").drop()
"""
    result = told(pytester, text)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*rule 1 never acted: when(Heartbeat).drop()*"])


@pytest.mark.parametrize("name", ["kafka_session", "kafka_sync_session"])
def test_a_cluster_of_the_session_serves_several_modules(pytester: pytest.Pytester, name: str) -> None:
    text = f"""
import pytest
import conftest

@pytest.mark.asyncio(loop_scope="session")
async def test_it({name}):
    conftest.ADDRESSES.add({name}.address)
    assert len(conftest.ADDRESSES) == 1
    assert list(topic.name for topic in {name}.core.broker.topics.all()) == ["__consumer_offsets", "orders"]
    found = {name}.create_topic("invoices")
    if found is not None:
        await found
"""
    pytester.makepyfile(test_other=text)
    conftest = """
import pytest

ADDRESSES = set()

@pytest.fixture(scope="session")
def kafka_settings():
    return {"topics": {"orders": 6}}
"""
    told(pytester, text, conftest=conftest).assert_outcomes(passed=2)


def test_a_program_may_live_as_long_as_the_shared_cluster(pytester: pytest.Pytester) -> None:
    text = """
import pytest
from confluent_kafka import Producer

pytestmark = pytest.mark.kafka(topics={"orders": 1})

@pytest.fixture(scope="module")
def application(kafka_sync_module):
    return Producer({"bootstrap.servers": kafka_sync_module.address})

@pytest.mark.parametrize("number", range(3))
def test_it(application, kafka_sync_module, number):
    application.produce("orders", b"%d" % number)
    application.flush()
    assert [each.value for each in kafka_sync_module.wait_records("orders", 1)] == [b"%d" % number]
"""
    told(pytester, text).assert_outcomes(passed=3)


def test_a_test_in_another_loop_than_the_shared_cluster_is_told_the_mark_that_mends_it(
    pytester: pytest.Pytester,
) -> None:
    text = """
import pytest

@pytest.mark.asyncio
async def test_module(kafka_module):
    pass

@pytest.mark.asyncio(loop_scope="module")
async def test_module_in_its_loop(kafka_module):
    await kafka_module.create_topic("orders")

@pytest.mark.asyncio(loop_scope="session")
async def test_module_in_a_wider_loop(kafka_module):
    pass

@pytest.mark.asyncio(loop_scope="module")
async def test_session(kafka_session):
    pass

@pytest.mark.asyncio(loop_scope="session")
async def test_session_in_its_loop(kafka_session):
    await kafka_session.create_topic("orders")
"""
    result = told(pytester, text)
    result.assert_outcomes(passed=2, errors=3)
    wrong = "this test runs in another event loop, where no client of {0} would be answered: {0} lives in the loop of scope "
    right = '"{0}", so a test needs @pytest.mark.asyncio(loop_scope="{0}"), and an asynchronous fixture *'
    of_module = wrong.format("kafka_module") + right.format("module")
    of_session = wrong.format("kafka_session") + right.format("session")
    result.stdout.fnmatch_lines([of_module, "*", of_module, "*", of_session])
    assert not [line for line in result.outlines if "Traceback" in line or "pytest_plugin.py" in line]


def test_an_asynchronous_fixture_in_another_loop_is_told_at_once(pytester: pytest.Pytester) -> None:
    text = """
import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

@pytest_asyncio.fixture
async def producer(kafka_module):
    async with AIOKafkaProducer(bootstrap_servers=kafka_module.address) as producer:
        yield producer

@pytest.mark.asyncio(loop_scope="module")
async def test_it(kafka_module, producer):
    await producer.send_and_wait("orders", b"an espresso")
"""
    result = told(pytester, text)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*RuntimeError: *@pytest_asyncio.fixture(loop_scope="module")'])
    mended = text.replace("@pytest_asyncio.fixture", '@pytest_asyncio.fixture(loop_scope="module")')
    told(pytester, mended).assert_outcomes(passed=1)


def test_the_fixture_of_a_test_lives_in_the_loop_of_the_test(pytester: pytest.Pytester) -> None:
    text = """
import pytest
from aiokafka import AIOKafkaProducer

async def send(kafka):
    async with AIOKafkaProducer(bootstrap_servers=kafka.address) as producer:
        await producer.send_and_wait("orders", b"an espresso")

class TestIt:
    @pytest.mark.asyncio(loop_scope="class")
    async def test_class(self, kafka):
        await send(kafka)

@pytest.mark.asyncio(loop_scope="module")
async def test_module(kafka):
    await send(kafka)

@pytest.mark.asyncio(loop_scope="package")
async def test_package(kafka_factory):
    await send(await kafka_factory())

@pytest.mark.asyncio
async def test_usual(kafka):
    await send(kafka)
"""
    for default in ("function", "session"):
        told(pytester, text, ini=f"asyncio_default_test_loop_scope = {default}").assert_outcomes(passed=4)


FACTORIES = """
import pytest

@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 1})
async def test_asynchronous(kafka_factory):
    one, other = await kafka_factory(), await kafka_factory(brokers=3, topics={"invoices": 1})
    assert one.address != other.address
    assert (len(one.brokers), len(other.brokers)) == (1, 3)
    assert ["orders" in each.core.broker.topics for each in (one, other)] == [True, False]
    await one.clock.advance(60)
    assert one.clock.now_ms() - other.clock.now_ms() > 50_000
    other.faults.when("Heartbeat").drop()

def test_synchronous(kafka_sync_factory):
    one, other = kafka_sync_factory(), kafka_sync_factory(brokers=3)
    assert (len(one.brokers), len(other.brokers)) == (1, 3)
    one.faults.when("Heartbeat").drop()
"""


def test_a_factory_makes_several_clusters_and_checks_each(pytester: pytest.Pytester) -> None:
    result = told(pytester, FACTORIES)
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*rule 1 never acted: when(Heartbeat).drop()"])


def test_settings_of_all_clusters_stand_in_one_fixture_and_the_marker_comes_before_them(
    pytester: pytest.Pytester,
) -> None:
    text = """
import pytest

def test_common(kafka_sync):
    assert sorted(kafka_sync.brokers) == [1, 2]

@pytest.mark.kafka(brokers=3)
def test_marked(kafka_sync):
    assert sorted(kafka_sync.brokers) == [1, 2, 3]

@pytest.mark.kafka(brokers=3)
def test_argument(kafka_sync_factory):
    assert len(kafka_sync_factory(brokers=4).brokers) == 4
"""
    conftest = "import pytest\n\n@pytest.fixture(scope='session')\ndef kafka_settings():\n    return {'brokers': 2}\n"
    told(pytester, text, conftest=conftest).assert_outcomes(passed=3)


def test_a_marker_that_nothing_heeds_is_refused(pytester: pytest.Pytester) -> None:
    text = """
import pytest

@pytest.mark.kafka(topics={"orders": 6})
def test_module(kafka_sync_module):
    pass

@pytest.mark.kafka(topics={"orders": 6})
def test_session(kafka_sync_session):
    pass

@pytest.mark.kafka(topics={"orders": 6})
def test_with_one_of_its_own(kafka_sync_session, kafka_sync):
    pass
"""
    result = told(pytester, text)
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["kafka_sync_module cannot heed the marker kafka of one test: mark the module *"])


def test_a_shared_cluster_keeps_no_data_in_a_directory(pytester: pytest.Pytester) -> None:
    text = """
import pytest

pytestmark = pytest.mark.kafka(data_dir="data")

def test_it(kafka_sync_module):
    pass
"""
    result = told(pytester, text)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["a cluster that several tests share is reset after each, and one with data_dir *"])


ONE_OF_EACH = """
async def test_asynchronous(kafka):
    await kafka.create_topic("orders")

def test_synchronous(kafka_sync):
    kafka_sync.create_topic("orders")
"""


def test_without_pytest_asyncio_the_asynchronous_fixture_says_so_in_one_line(pytester: pytest.Pytester) -> None:
    result = told(pytester, ONE_OF_EACH, "-p", "no:asyncio", "--tb=short")
    result.assert_outcomes(passed=1, errors=1)
    says = "the fixture kafka needs pytest-asyncio, which is in groupcoord[testing], or anyio; kafka_sync needs neither"
    assert says in result.outlines


def test_a_test_without_its_mark_is_told_of_both_ways(pytester: pytest.Pytester) -> None:
    result = told(pytester, ONE_OF_EACH)  # strict mode
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["nothing runs this asynchronous test: mark it with @pytest.mark.asyncio, or say asyncio_mode = auto in *"]
    )


@pytest.mark.parametrize(
    "ini", ["asyncio_mode = auto", "asyncio_mode = auto\nasyncio_default_test_loop_scope = module"]
)
def test_in_automatic_mode_no_mark_is_needed(pytester: pytest.Pytester, ini: str) -> None:
    text = ONE_OF_EACH
    if "module" in ini:
        text += "\n" + ONE_OF_EACH.replace("kafka", "kafka_module").replace("test_", "test_shared_").replace(
            "kafka_module_sync", "kafka_sync_module"
        )
    told(pytester, text, ini=ini).assert_outcomes(passed=text.count("def test_"))


def test_with_anyio_a_module_shares_one_loop(pytester: pytest.Pytester) -> None:
    pytest.importorskip("anyio")
    text = """
import pytest

pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.mark.parametrize("number", range(2))
async def test_it(kafka_module, kafka_factory, number):
    await kafka_module.create_topic("orders")
    await (await kafka_factory()).create_topic("orders")
"""
    told(pytester, text, "-p", "anyio").assert_outcomes(passed=2)
