"""Generates the tables of docs/faults.md: where requests name groups, members, topics, transactional ids; actions; damage."""

from groupcoord.protocol.api_descriptor import RequestField
from groupcoord.protocol.apis import APIS
from groupcoord.testing.faults.actions import ACTION_TYPES, Damage
from tools.markdown import table


def actions() -> str:
    """What each action does, and its argument."""
    rows = []
    for each in ACTION_TYPES.values():
        argument = "" if each.argument is None else f"`{each.argument.name}`: {each.argument.text}"
        if each.on_broker:
            argument = "; ".join(filter(None, [argument, "`broker_id`, `moment`: see below"]))
        where = "programs" if each.name in _FOR_PROGRAMS or (each.argument and each.argument.write is None) else "both"
        rows.append(f"| `{each.name}` | {argument} | {each.text} | {where} |")
    return table("| action | argument | what it does | in |", rows)


_FOR_PROGRAMS = {"hold", "hold_answer"}


def fields() -> str:
    """Where requests of each API name groups, members, topics and transactional ids."""
    places = {
        api.name: (api.groups, api.members + api.instances, api.topics, api.transactional_ids) for api in APIS.values()
    }
    rows = [f"| {name} | {' | '.join(map(_paths, of_api))} |" for name, of_api in places.items() if any(of_api)]
    others = [name for name, of_api in places.items() if not any(of_api)]
    head = "| API | `group` | `member` | `topic` | `transactional_id` |"
    return f"{table(head, rows)}\nRequests of {', '.join(others)} have none of these fields.\n"


def damage() -> str:
    """What ``corrupt`` does to the bytes of a response."""
    return "".join(f"- `{how}`: {how.text}\n" for how in Damage)


def _paths(places: tuple[RequestField, ...]) -> str:
    return ", ".join(
        f"`{place.path}`" + ("" if place.only is None else f" if `{place.only[0]}` is {place.only[1]}")
        for place in places
    )
