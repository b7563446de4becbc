from groupcoord.simulation.prng import Prng, draw


def test_what_is_drawn_depends_on_the_key_and_on_what_it_is_for() -> None:
    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(1, 2, 3), draw(1, 3, 2), draw(2, 2, 3), draw(1, 2), draw(1, 2, 4)}) == 5
    assert 0 <= draw(7, 1) < 1 << 64


def test_a_stream_is_its_key() -> None:
    assert [Prng(5).next_int(100) for _ in range(2)] == [Prng(5).next_int(100)] * 2
    stream = Prng(5)
    assert len({stream.next_int(1 << 60) for _ in range(50)}) == 50


def test_what_a_node_wants() -> None:
    stream = Prng(9)
    assert all(0 <= stream.fraction() < 1 for _ in range(100))
    assert all(0 < stream.session_id() < 1 << 31 for _ in range(100))
    drawn_ids = [stream.uuid() for _ in range(500)]
    assert len(set(drawn_ids)) == 500
    assert not any(made.bytes[0] >> 2 == 0b111110 for made in drawn_ids)  # Kafka's text of it would start with a dash
