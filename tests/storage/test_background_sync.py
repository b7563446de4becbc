"""What is done in the background is done in order, and waited for at the end."""

from groupcoord.storage.background_sync import BackgroundSync


def test_one_after_the_other() -> None:
    background = BackgroundSync()
    done: list[int] = []
    futures = [background.submit(lambda number=number: done.append(number)) for number in range(20)]  # type: ignore[misc]
    background.close()
    assert done == list(range(20))
    assert all(future.done() for future in futures)
    background.close()


def test_what_goes_wrong_is_in_the_future() -> None:
    background = BackgroundSync()

    def fail() -> None:
        raise OSError(5, "Input/output error")

    future = background.submit(fail)
    background.close()
    assert isinstance(future.exception(), OSError)
