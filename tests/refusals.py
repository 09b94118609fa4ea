"""What a call that cannot be done is refused with."""

from collections.abc import Callable
from typing import Any

import pytest

from ledgerops.errors import UserError


def refusal_of(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The line of error with which the call is refused."""
    with pytest.raises(UserError) as refused:
        call(*arguments, **options)
    return str(refused.value)
