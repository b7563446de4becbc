from groupcoord.testing.simulation.front import plan_of
from groupcoord.testing.simulation.story import Line, Story, cast_of, text_of

ID = "-00000000-1111-2222-3333-444444444444"


def test_member_ids_become_short() -> None:
    story = Story()
    story.tell(1_500, "coordinator", f"a{ID} joins, instance-b{ID} too, then a{ID.replace('4', '5')}, and a{ID} again")
    assert text_of(story.lines) == "     1.500  coordinator  a#1 joins, instance-b#1 too, then a#2, and a#1 again"


def test_whos_are_lined_up() -> None:
    assert text_of([Line(0, "a", "x"), Line(0, "abc", "y")]) == "     0.000  a    x\n     0.000  abc  y"
    assert text_of([]) == ""


def test_the_cast_names_everybody_and_everything() -> None:
    plan = plan_of(2)
    text = cast_of(plan)
    assert all(member.text() in text for member in plan.members)
    assert all(f"({number}) " in text for number, _ in plan.numbered())
    assert {cast_of(plan_of(seed)).split(";")[0] for seed in range(20)} == {"1 broker", "3 brokers"}
