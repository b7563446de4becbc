"""Writes groupcoord/testing/sync_api.py: for each class of the asynchronous face, the same class without ``await``."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

from groupcoord.testing.manual_member import ManualMember

PATH = Path(__file__).resolve().parent.parent / "groupcoord" / "testing" / "sync_api.py"
PROXIES = {
    "groupcoord.testing.auto_member.AutoMember": "SyncAutoMember",
    "groupcoord.testing.manual_member.ManualMember": "SyncManualMember",
    "groupcoord.testing.barrier.Barrier": "SyncBarrier",
    "groupcoord.testing.appends.HeldAppends": "SyncHeldAppends",
    "groupcoord.testing.cluster_clock.ClusterClock": "SyncClusterClock",
    "groupcoord.testing.groups.GroupHandle": "SyncGroupHandle",
    "groupcoord.testing.cluster_group.ClusterGroup": "SyncClusterGroup",
    "groupcoord.testing.remote_group.RemoteGroup": "SyncRemoteGroup",
    "groupcoord.testing.kafka_cluster.KafkaCluster": "SyncKafkaCluster",
    "groupcoord.testing.cluster.Cluster": "SyncCluster",
    "groupcoord.testing.remote_cluster.RemoteCluster": "SyncRemoteCluster",
}
LEFT_OUT = {
    "Cluster": {"sync"},
    "RemoteCluster": {"sync", "ask_coordinator", "newest_generation"},
    "AutoMember": {"start", "next_deadline", "expire", "membership"},
}
"""What belongs to the program around them."""
SETTABLE = {"instance_id", "member_id", "generation", "leader", "protocol", "assigned"}
"""What a test may set of a ManualMember."""
GENERIC = {"SyncGroupHandle", "SyncKafkaCluster"}
_NAMES = {name.rpartition(".")[2]: proxy for name, proxy in PROXIES.items()}
_HEAD = '''"""The synchronous face: the classes of groupcoord.testing, every method without ``await``.

Generated from them by tools/sync_api.py (``python -m tools.docs``). ``Cluster(...).sync()`` is where it begins.
"""

'''
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_text() -> str:
    """The whole module."""
    imports: set[str] = {"from groupcoord.testing.sync import SyncContext, SyncProxy"}
    classes = [_class(name, imports) for name in PROXIES]
    text = _HEAD + "\n".join(sorted(imports)) + "\n\n" + "\n\n".join(classes) + "\n"
    for command in (["check", "--quiet", "--fix", "--select", "I,F401"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(PATH), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return text


def _class(name: str, imports: set[str]) -> str:
    module_name, _, class_name = name.rpartition(".")
    found = getattr(importlib.import_module(module_name), class_name)
    imports.add(f"from {module_name} import {class_name}")
    proxied = [base for base in found.__mro__[1:] if base.__name__ in _NAMES]
    inherited: dict[str, str] = {}
    for base in proxied:
        _collect(base, imports, inherited, set())
    members: dict[str, str] = {}
    _collect(found, imports, members, LEFT_OUT.get(class_name, set()))
    own = [text for key, text in members.items() if _signature(text) != _signature(inherited.get(key, ""))]
    title = (inspect.getdoc(found) or "").partition("\n")[0]
    parameter, parent = class_name, "SyncContext" if hasattr(found, "__aenter__") else "SyncProxy"
    head = ""
    if proxied:
        parent = _NAMES[proxied[0].__name__]
    elif found.__subclasses__():
        imports.add("from typing import TypeVar")
        parameter = f"{class_name}T"
        head = f'{parameter} = TypeVar("{parameter}", bound={class_name})\n\n\n'
    head += f'class {_NAMES[class_name]}({parent}[{parameter}]):\n    """{title}"""\n'
    return "\n\n".join([head, *own])


def _signature(text: str) -> str:
    return text.partition('"""')[0]


def _collect(base: type, imports: set[str], members: dict[str, str], left_out: set[str]) -> None:
    tree = ast.parse(inspect.getsource(sys.modules[base.__module__]))
    (class_def,) = (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == base.__name__)
    known = _imported(tree, base.__module__)
    for number, each in enumerate(class_def.body):
        match each:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_") and name not in left_out:
                told = class_def.body[number + 1]
                doc = told.value.value if isinstance(told, ast.Expr) and isinstance(told.value, ast.Constant) else ""
                _import_names(each.annotation, known, imports)
                members[name] = _attribute(
                    name, ast.unparse(each.annotation), str(doc), settable=base is ManualMember and name in SETTABLE
                )
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not each.name.startswith("_"):
                if each.name not in left_out:
                    _import_names(each.args, known, imports)
                    members[each.name] = _method(each, known, imports)
            case _:
                pass


def _attribute(name: str, annotation: str, doc: str, *, settable: bool) -> str:
    getter = f'''
    @property
    def {name}(self) -> {annotation}:
        """{doc or f"The target's ``{name}``."}"""
        return self._target.{name}
'''
    setter = f"""
    @{name}.setter
    def {name}(self, value: {annotation}) -> None:
        self._target.{name} = value
"""
    return getter + setter if settable else getter


def _method(function: _Function, known: dict[str, str], imports: set[str]) -> str:
    is_property = any(isinstance(each, ast.Name) and each.id == "property" for each in function.decorator_list)
    returns = function.returns
    if isinstance(returns, ast.Constant) and isinstance(returns.value, str):
        returns = ast.parse(returns.value, mode="eval").body
    if returns is None:
        raise TypeError(f"{function.name} does not say what it returns")
    result = ast.unparse(returns)
    how = "_wait" if isinstance(function, ast.AsyncFunctionDef) else "_call"
    if result.startswith("asyncio.Future["):
        how, result = "_future", "concurrent.futures." + result.removeprefix("asyncio.")
        imports.add("import concurrent.futures")
    start, arguments = f"self._target.{function.name}", _arguments(function.args)
    if is_property or arguments:
        start = f"lambda: {start}" if is_property else f"lambda: {start}({arguments})"
    call = f"self.{how}({start})"
    if result == "Faults":
        imports.add("from groupcoord.testing.faults.api import SyncFaults")
        result, call = "SyncFaults", f"{call}.sync()"
    elif result in _NAMES:
        proxy = _NAMES[result]
        imports.add("from typing import Any")
        result, call = proxy + "[Any]" * (proxy in GENERIC), f"{proxy}({call}, self._thread)"
    elif result.startswith("list[") and (item := result[5:-1]) in _NAMES:
        result = f"list[{_NAMES[item]}]"
        call = f"[{_NAMES[item]}(each, self._thread) for each in {call}]"
    else:
        _import_names(returns, known, imports)
    doc = (ast.get_docstring(function) or "").partition("\n\n")[0].replace("\n", "\n        ")
    decorator = "    @property\n" if is_property else ""
    body = call if result == "None" else f"return {call}"
    signature = ast.unparse(function.args)
    return f'{decorator}    def {function.name}({signature}) -> {result}:\n        """{doc}"""\n        {body}\n'


def _arguments(arguments: ast.arguments) -> str:
    passed = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][1:]
    passed += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    passed += [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    passed += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return ", ".join(passed)


def _imported(tree: ast.Module, module_name: str) -> dict[str, str]:
    """Name → the statement that imports it."""
    known: dict[str, str] = {}
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom):
            known |= {alias.name: f"from {each.module} import {alias.name}" for alias in each.names}
        elif isinstance(each, ast.Import):
            known |= {alias.name: f"import {alias.name}" for alias in each.names}
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            known[each.name] = f"from {module_name} import {each.name}"
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            known[each.targets[0].id] = f"from {module_name} import {each.targets[0].id}"
    return known


def _import_names(part: ast.AST, known: dict[str, str], imports: set[str]) -> None:
    for each in ast.walk(part):
        if isinstance(each, ast.Name) and each.id in known:
            imports.add(known[each.id])
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier():
            imports.update({known[each.value]} if each.value in known else ())
