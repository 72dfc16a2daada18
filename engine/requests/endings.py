"""What may end an output early: the request's own ending, and stopping criteria, which all read each token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...sampling.logits_stages import StageRequest
from ...sampling.stopping import STOPPING, EndsAfter, StoppingCriterion
from ..errors import RequestError, StoppingFailure
from .request import Ending


class Endings:
    """Several endings of one output as one."""

    def __init__(self, own: Ending | None, criteria: Sequence[StoppingCriterion], request: StageRequest) -> None:
        """Raises RequestError for a criterion that raises when it begins."""
        self._own = own
        self._criteria = [(each, _begun(each, request)) for each in criteria]

    def ends_after(self, token_id: int) -> bool:
        """Whether one of them ends here. Raises StoppingFailure for a criterion that raises."""
        has_ended = self._own is not None and self._own.ends_after(token_id)
        for criterion, ends_after in self._criteria:
            try:
                has_ended = bool(ends_after(token_id)) or has_ended
            except Exception as error:
                name = STOPPING.called(criterion)
                raise StoppingFailure(f'stopping criterion "{name}": {type(error).__name__}: {error}') from error
        return has_ended


def _begun(criterion: StoppingCriterion, request: StageRequest) -> EndsAfter:
    try:
        return criterion.begin(request)
    except Exception as error:
        message = f'stopping criterion "{STOPPING.called(criterion)}" refuses the request: {type(error).__name__}: {error}'
        raise RequestError(message).about("stopping_criteria") from error


def ending_maker(
    own: Callable[[], Ending] | None, criteria: Sequence[StoppingCriterion], request: StageRequest
) -> Callable[[], Ending] | None:
    """Makes what follows an output from its beginning; None where nothing ends it early."""
    if not criteria:
        return own
    return lambda: Endings(None if own is None else own(), criteria, request)
