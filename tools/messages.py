"""Generates ``protocol/apis/<api>.py`` from the definitions of kio: ``python -m tools.messages OffsetDelete``.

The file is a draft to be read and completed: the messages are right (field, type, default, versions), with the meaning that
Kafka's definitions give; the ``Api`` is a guess. Without an API, only the index ``protocol/messages.py`` is written anew.
"""

import ast
import dataclasses
import datetime as dt
import inspect
import itertools
import pkgutil
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from groupcoord.protocol.api_descriptor import ApiKey
from groupcoord.protocol.codec.schema import PLAIN_KINDS, field_name_of, parse_annotation

PROTOCOL = Path(__file__).resolve().parent.parent / "groupcoord" / "protocol"
WIDTH = 124
_PYTHON_TYPES = {"string": "str", "bytes": "bytes", "bool": "bool", "float64": "float", "uuid": "uuid.UUID"}
_ZEROS = {"str": '""', "bytes": 'b""', "bool": "False", "float": "0.0", "int": "0"}


@dataclasses.dataclass
class MessageField:
    """A field of a version-free message. ``versions`` are those that carry it; ``default`` is source, None if there is none."""

    name: str
    type_name: str
    is_array: bool
    is_nullable: bool
    tag: int | None
    default: str | None
    text: str
    versions: list[int]

    @property
    def annotation(self) -> str:
        """The type, as source."""
        text = f"tuple[{self.type_name}, ...]" if self.is_array else self.type_name
        return f"{text} | None" if self.is_nullable else text

    def default_in(self, api_versions: Sequence[int]) -> str | None:
        """The default as source: Kafka's, or the zero that Kafka has for a field that some ``api_versions`` lack."""
        if self.default is not None:
            return self.default
        if self.is_array and not self.is_nullable:
            return "()"
        usual = self.name in ("error_code", "error_message", "throttle_time_ms") or self.type_name == "bool"
        if not usual and self.versions == list(api_versions):
            return None
        return "None" if self.is_nullable else _ZEROS.get(self.type_name, f"{self.type_name}()")

    def lines(self, versions: Sequence[int], api_versions: Sequence[int]) -> Iterator[str]:
        """The field as source, in a message of ``versions`` of the ``api_versions``."""
        default = self.default_in(api_versions)
        line = f"    {self.name}: {self.annotation}" + ("" if default is None else f" = {default}")
        notes = [] if self.versions == list(versions) else [_range(self.versions, versions[-1])]
        notes += [] if self.tag is None else [f"tag {self.tag}"]
        comment = "; ".join(filter(None, (", ".join(notes), self.text)))
        if comment and len(line) + len(comment) + 4 <= WIDTH:
            yield f"{line}  # {comment}"
            return
        if comment:
            yield from textwrap.wrap(comment, WIDTH, initial_indent="    # ", subsequent_indent="    # ")
        yield line


@dataclasses.dataclass
class MessageClass:
    """A version-free message class: ``versions`` are those in which it occurs."""

    name: str
    fields: dict[str, MessageField]
    versions: list[int]
    flexible_from: int | None

    def source(self, what: str, api_versions: Sequence[int]) -> str:
        """The class as source, with ``what`` it is."""
        added: dict[int, list[str]] = {}
        for field in self.fields.values():
            if field.versions[0] > self.versions[0]:
                added.setdefault(field.versions[0], []).append(field.name)
        history = [f"v{version} adds {', '.join(names)}" for version, names in sorted(added.items())]
        if self.flexible_from is not None and self.flexible_from > self.versions[0]:
            history.append(f"v{self.flexible_from} is flexible")
        text = what + (f" {'; '.join(history)}." if history else "")
        lines = textwrap.wrap(f'"""{text}', WIDTH, initial_indent="    ", subsequent_indent="    ")
        lines[-1] += '"""' if len(lines) == 1 else '\n    """'
        body = [line for field in self.fields.values() for line in field.lines(self.versions, api_versions)]
        return "\n".join(["@message", f"class {self.name}:", *lines, "", *body]) + "\n"


def _range(versions: Sequence[int], last: int) -> str:
    return f"v{versions[0]}+" if versions[-1] == last else f"v{versions[0]}–{versions[-1]}"


def package_of(api_name: str) -> str:
    """The name that kio has: ``offset_delete`` of ``OffsetDelete``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", api_name).lower()


def message_classes(package: str, kind: str, versions: Sequence[int]) -> list[MessageClass]:
    """The classes of a request or response (``kind``) as of ``versions`` together, nested ones first."""
    classes: dict[str, MessageClass] = {}
    for version in versions:
        module = import_module(f"kio.schema.{package}.v{version}.{kind}")
        _merge(classes, getattr(module, _camel(package) + kind.title()), version)
    ordered: dict[str, MessageClass] = {}

    def add(message: MessageClass) -> None:
        for field in message.fields.values():
            if field.type_name in classes:
                add(classes[field.type_name])
        ordered.setdefault(message.name, message)

    add(classes[_camel(package) + kind.title()])
    return list(ordered.values())


def _merge(classes: dict[str, MessageClass], theirs: type[Any], version: int) -> None:
    texts = _texts(theirs)
    found = []
    for field in dataclasses.fields(theirs):
        inner, is_array, is_nullable = parse_annotation(field.type)
        kafka_type = field.metadata.get("kafka_type", "struct")
        kind = PLAIN_KINDS.get(kafka_type, kafka_type)
        if kind == "struct":
            _merge(classes, inner, version)
        found.append(
            MessageField(
                name=field_name_of(field.name, kafka_type),
                type_name=inner.__name__ if kind == "struct" else _PYTHON_TYPES.get(kind, "int"),
                is_array=is_array,
                is_nullable=is_nullable and (is_array or kind in ("string", "bytes", "uuid", "struct")),
                tag=field.metadata.get("tag"),
                default=None if field.default is dataclasses.MISSING else _source_of(field.default, kafka_type),
                text=texts.get(field.name, ""),
                versions=[version],
            )
        )
    ours = classes.setdefault(theirs.__name__, MessageClass(theirs.__name__, {}, [], None))
    if version not in ours.versions:
        ours.versions.append(version)
    if theirs.__flexible__ and ours.flexible_from is None:
        ours.flexible_from = version
    for new in found:
        known = ours.fields.setdefault(new.name, new)
        if known is not new:
            known.is_nullable |= new.is_nullable
            known.default = new.default if new.default is not None else known.default
            if version not in known.versions:
                known.versions.append(version)


def _source_of(default: Any, kafka_type: str) -> str:
    if isinstance(default, dt.timedelta):
        return str(round(default / dt.timedelta(milliseconds=1)))
    if default is None and kafka_type.startswith("datetime"):
        return "-1"
    if dataclasses.is_dataclass(default):
        return f"{type(default).__name__}()"
    return repr(default.value if hasattr(default, "value") else default)


def _texts(theirs: type[Any]) -> dict[str, str]:
    """What Kafka's definitions say of each field: kio has it as a text behind the field."""
    found = {}
    nodes = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(theirs)))))
    body = next(node.body for node in nodes if isinstance(node, ast.ClassDef))
    for field, text in itertools.pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                found[name] = said.rstrip(".")
    return found


def versions_of(package: str) -> list[int]:
    """The versions that kio knows, which are those of Kafka 4."""
    found = import_module(f"kio.schema.{package}")
    return sorted(int(each.name.removeprefix("v")) for each in pkgutil.iter_modules(found.__path__) if each.ispkg)


def draft(api_name: str) -> str:
    """The source of the file for ``api_name``, to be completed."""
    package = package_of(api_name)
    versions = versions_of(package)
    request = message_classes(package, "request", versions)
    response = message_classes(package, "response", versions)
    for shared in {each.name for each in request} & {each.name for each in response}:
        _prefix(request, shared, f"{api_name}Request")
        _prefix(response, shared, f"{api_name}Response")
    classes = "\n\n".join(each.source(f"{_words(each.name)}.", versions) for each in (*request, *response))
    names = _request_fields(request)
    imports = sorted({name for values in names.values() for name in values if name.isupper()})
    used = ", ".join([*imports, "Api", "ApiKey", *(["RequestField"] if "RequestField" in repr(names) else [])])
    error = _error_response(request, response, versions)
    return (
        f'"""{api_name} (API key {ApiKey[package.upper()]}): request and response messages, and their Api."""\n\n'
        + ("import uuid\n\n" if "uuid.UUID" in classes else "")
        + f"from groupcoord.protocol.api_descriptor import {used}\n"
        + "from groupcoord.protocol.message_dataclass import message\n\n\n"
        + f"{classes}\n\nAPI = Api(\n    key=ApiKey.{package.upper()},\n"
        + f"    request={api_name}Request,\n    response={api_name}Response,\n"
        + f"    min_version={versions[0]},\n    max_version={versions[-1]},\n"
        + f'    summary="{_words(api_name)}",\n'
        + ("" if error.endswith("Response(error_code=error)") else f"    make_error_response={error},\n")
        + "".join(f"    {argument}=({', '.join(values)},),\n" for argument, values in names.items() if values)
        + ")\n"
    )


def _error_response(request: list[MessageClass], response: list[MessageClass], versions: Sequence[int]) -> str:
    """The response that says an error at the top, or, where there is no room for it, about everything in the request."""
    asked_classes, answer_classes = ({each.name: each for each in classes} for classes in (request, response))

    def has_error(answer: MessageClass) -> bool:
        nested = (answer_classes.get(field.type_name) for field in answer.fields.values())
        return "error_code" in answer.fields or any(each is not None and has_error(each) for each in nested)

    def value(answer: MessageClass, asked: MessageClass | None, source: str) -> str:
        arguments = []
        told = asked is None  # is it said what was asked for, where that is not a struct?
        for field in answer.fields.values():
            nested, same = answer_classes.get(field.type_name), asked and asked.fields.get(field.name)
            lists = [each for each in asked.fields.values() if each.is_array] if asked else []
            if field.name == "error_code":
                arguments.append("error_code=error")
            elif nested and field.is_array and lists and has_error(nested) and "error_code" not in answer.fields:
                items = same if same and same.is_array else lists[0]
                item = "item" if source == "request" else "part"
                inner = value(nested, asked_classes.get(items.type_name), item)
                arguments.append(f"{field.name}=tuple({inner} for {item} in {source}.{items.name})")
            elif same and source != "request" and field.default is None and same.annotation == field.annotation:
                arguments.append(f"{field.name}={source}.{field.name}")
            elif field.default_in(versions) is None:
                zero = "None" if field.is_nullable else _ZEROS.get(field.type_name, f"{field.type_name}()")
                arguments.append(f"{field.name}={source if told else zero}")
                told = False
        return f"{answer.name}({', '.join(arguments)})"

    text = value(response[-1], request[-1], "request")
    names = (name if re.search(rf"\b{name}\b", text) else f"_{name}" for name in ("request", "version", "error"))
    return f"lambda {', '.join(names)}: {text}"


def _request_fields(request: list[MessageClass]) -> dict[str, list[str]]:
    """Where the request seems to name groups, members and so on: arguments of Api."""
    by_name = {each.name: each for each in request}
    constants = {"group_id": "GROUP_ID", "member_id": "MEMBER_ID", "group_instance_id": "INSTANCE_ID"}
    constants |= {"topics[].name": "TOPIC_NAME", "topics[].topic_id": "TOPIC_ID"}
    found: dict[str, list[str]] = {
        kind: [] for kind in ("groups", "members", "instances", "topics", "partitions", "transactional_ids")
    }

    def look(message: MessageClass, path: str) -> None:
        for field in message.fields.values():
            here = f"{path}{field.name}" + ("[]" if field.is_array else "")
            if field.type_name in by_name:
                look(by_name[field.type_name], f"{here}.")
                continue
            for kind, pattern in _KINDS.items():
                if re.search(pattern, here):
                    found[kind].append(constants.get(here, f'RequestField("{here}")'))

    look(request[-1], "")
    return found


_KINDS = {
    "groups": r"(^|\.)(group_ids?|groups?(\[\])?)(\[\])?$",
    "members": r"(^|\.)member_id$",
    "instances": r"(^|\.)(group_)?instance_id$",
    "topics": r"topic\w*\[\]\.(name|topic|topic_id|topic_name)$|(^|\.)subscribed_topic_names\[\]$",
    "partitions": r"topic.*(\.partitions?|\.partition_index|\.partition_indexes|\.partitions)(\[\])?$",
    "transactional_ids": r"(^|\.)transactional_id$",
}


def _prefix(classes: list[MessageClass], name: str, prefix: str) -> None:
    """Two classes of one name, in the request and in the response, get names of their own."""
    for each in classes:
        each.name = prefix + each.name if each.name == name else each.name
        for field in each.fields.values():
            field.type_name = prefix + field.type_name if field.type_name == name else field.type_name


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).capitalize()


def _camel(package: str) -> str:
    return package.title().replace("_", "")


def index() -> str:
    """The source of ``protocol/messages.py``: the request and the response of every API."""
    modules = sorted(module.name for module in pkgutil.iter_modules([str(PROTOCOL / "apis")]))
    apis = [import_module(f"groupcoord.protocol.apis.{name}").API for name in modules]
    lines = [f"from {api.request.__module__} import {api.request.__name__}, {api.response.__name__}" for api in apis]
    return "\n".join([_INDEX_TEXT, *lines, ""])


_INDEX_TEXT = '''"""The request and response classes of every API, re-exported; nested classes are in ``apis/``.

Written by ``python -m tools.messages``.

"vN is flexible" means compact lengths and tagged fields from there on (KIP-482). The errors listed in ``apis/`` are those
of a server without ACLs and quotas; UNKNOWN_SERVER_ERROR is possible in every API.
"""
'''


def formatted(source: str) -> str:
    """``source`` as ruff formats it."""
    command = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", str(PROTOCOL / "x.py"), "--quiet"]
    return subprocess.run(  # noqa: S603 - this very Python
        command, input=source, capture_output=True, text=True, check=True
    ).stdout


def main(arguments: list[str]) -> int:
    """Write the drafts of the APIs in ``arguments``, and the index; returns the exit code."""
    for api_name in arguments:
        if package_of(api_name).upper() not in ApiKey.__members__:
            sys.stderr.write(f"there is no API {api_name}\n")
            return 2
        path = PROTOCOL / "apis" / f"{package_of(api_name)}.py"
        path.write_text(formatted(draft(api_name)), encoding="utf-8")
        sys.stdout.write(f"wrote {path}: read it, and complete its Api\n")
    (PROTOCOL / "messages.py").write_text(formatted(index()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
