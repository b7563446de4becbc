"""Variables in place of the options and properties of ``groupcoord serve``."""

import argparse
from pathlib import Path

import pytest

from groupcoord.cli import serve
from groupcoord.cli.main import main
from groupcoord.cli.serve_environment import ServeVariables, read_variables
from groupcoord.config.environment_variable_names import PREFIX, property_variable
from groupcoord.config.property_definitions import BROKER
from tests.cli.test_serve import configured, refused


def options() -> list[argparse.Action]:
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    return parser._actions


def read(**environ: str) -> ServeVariables:
    return read_variables(options(), environ)


def set_all(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(PREFIX + name, text)


def test_variables_of_others_say_nothing() -> None:
    assert read(PATH="/bin", KAFKA_NODE_ID="3", GROUPCOORDS="1") == ServeVariables()


def test_options_are_parsed_as_those_of_the_command_line() -> None:
    assert read(
        GROUPCOORD_PORT="7",
        GROUPCOORD_DATA_DIR="/data",
        GROUPCOORD_TOPICS="orders:6, payments",
        GROUPCOORD_RACKS="a,b",
        GROUPCOORD_DEV="true",
        GROUPCOORD_NO_UVLOOP="false",
        GROUPCOORD_LOG_LEVEL="error",
        GROUPCOORD_HOST="",
    ).options == {
        "port": 7,
        "data_dir": Path("/data"),
        "topics": [("orders", 6), ("payments", None)],
        "racks": ("a", "b"),
        "dev": True,
        "no_uvloop": False,
        "log_level": "error",
    }


def test_every_other_variable_is_a_property_written_as_in_the_image_of_kafka() -> None:
    assert property_variable("group.max.size") == "GROUPCOORD_GROUP_MAX_SIZE"
    assert property_variable("a_b.c-d") == "GROUPCOORD_A__B_C___D"
    read_properties = read(GROUPCOORD_NUM_PARTITIONS="3", GROUPCOORD_BROKER_RACK="").properties
    assert [(each.key, each.value) for each in read_properties] == [("broker.rack", ""), ("num.partitions", "3")]


def test_no_variable_means_both_an_option_and_a_property() -> None:
    of_options = {PREFIX + action.dest.upper() for action in options()}
    assert not of_options & {property_variable(name) for name in BROKER}
    assert len({property_variable(name) for name in BROKER}) == len(BROKER)


@pytest.mark.parametrize(
    ("variable", "text", "problem"),
    [
        ("TOPIC", "orders", "no option and no property has this variable; did you mean GROUPCOORD_TOPICS?"),
        ("FOO", "1", "no option and no property has this variable; groupcoord serve --help says which there are"),
        ("GROUP_MAX_SYZE", "3", "no option and no property has this variable; did you mean GROUPCOORD_GROUP_MAX_SIZE?"),
        ("VERBOSE", "true", "no option and no property has this variable"),
        ("HELP", "true", "no option and no property has this variable"),
        ("PROPERTIES", "a=b", "no option and no property has this variable"),
        ("PORT", "x", "x is not a port: a number from 0 to 65535"),
        ("TOPICS", "a:1,b:0", "b:0: the number of partitions is not a number above 0"),
        ("GROUP_MAX_SIZE", "many", "group.max.size=many: expected INT, at least 1"),
    ],
)
def test_a_mistake_is_told_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, text: str, problem: str
) -> None:
    set_all(monkeypatch, **{variable: text})
    code, line = refused(capsys)
    assert code == 2
    assert line.startswith(f"{PREFIX}{variable}: {problem}")


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [("DEV", "yes", "true, false"), ("LOG_LEVEL", "loud", "debug, info, warning, error")],
)
def test_what_is_none_of_the_choices_is_told_with_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, text: str, expected: str
) -> None:
    set_all(monkeypatch, **{variable: text})
    assert refused(capsys) == (2, f"{PREFIX}{variable}={text}: expected one of {expected}")


def test_a_variable_that_cannot_be_used_does_not_hide_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_all(monkeypatch, PORT="x")
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--help"])
    assert ended.value.code == 0
    assert "GROUPCOORD_TOPICS=" in capsys.readouterr().out


def test_the_command_line_wins_over_variables_and_those_over_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\ngroup.max.size=7\noffset.metadata.max.bytes=9\n")
    variables = {"CONFIG": str(file), "PORT": "1", "HOST": "127.0.0.2", "NUM_PARTITIONS": "4", "GROUP_MAX_SIZE": "8"}
    set_all(monkeypatch, **variables)
    server = configured(monkeypatch, "--port", "0", "-c", "num.partitions=5")
    config = server.cluster.config
    assert server.address == "127.0.0.2:0"
    assert (config.num_partitions, config.group_max_size, config.offset_metadata_max_bytes) == (5, 8, 9)


def test_topics_of_the_command_line_come_to_those_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, TOPICS="orders:6")
    server = configured(monkeypatch, "--topic", "payments:2")
    topics = {topic.name: len(topic.partitions) for topic in server.cluster.broker.topics.all()}  # type: ignore[attr-defined]
    assert (topics["orders"], topics["payments"]) == (6, 2)
