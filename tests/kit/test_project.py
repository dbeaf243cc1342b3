"""kit/project.py: how commands for developers report an error of the system."""

import pytest

from sampletool.kit.project import describe_os_error


@pytest.mark.parametrize(
    ("error", "description"),
    [
        (OSError(2, "No such file or directory", "a.txt"), "No such file or directory: a.txt"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("It failed"), "It failed"),
    ],
)
def test_only_what_the_error_knows_is_described(error: OSError, description: str) -> None:
    assert describe_os_error(error) == description
