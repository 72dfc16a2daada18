"""Both ways to search: a request becomes members in the batch, and the logits of members decide who goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Sequence as Sequence_
from typing import TypeAlias

from torch import Tensor

from ..errors import RequestError
from ..limits import Limits
from ..requests.request import Request
from ..requests.sequence import Sequence, SequenceGroup
from .beams import UNDERSTOOD as OF_BEAMS
from .beams import Beams, BeamSearch
from .particles import UNDERSTOOD as OF_PARTICLES
from .particles import Particles, Swarm
from .search_group import SearchGroup, Surroundings, check_search

Search: TypeAlias = BeamSearch | Particles


def check(request: Request, search: Search, limits: Limits, shares: bool) -> None:
    """Raises RequestError when this request cannot be searched for like that."""
    if isinstance(search, BeamSearch):
        check_search(request, search.width, limits, kind="beam search", understood=OF_BEAMS, shares=shares)
        return
    check_search(request, search.count, limits, kind="particles", understood=OF_PARTICLES, shares=shares)
    if request.sampling.is_greedy:
        raise RequestError("particles are drawn; temperature must be above 0")


def begin(facade: Sequence, search: Search, around: Surroundings) -> SearchGroup:
    """Start a search: its members enter the batch, and `facade` is the request that it is known by."""
    return Beams(facade, search, around) if isinstance(search, BeamSearch) else Swarm(facade, search, around)


def by_group(members: Sequence_[Sequence], logits: Tensor) -> Iterator[tuple[SequenceGroup, list[Sequence], Tensor]]:
    """Members of the same search together, with their logits [members, head width]."""
    places: defaultdict[SequenceGroup, list[int]] = defaultdict(list)
    for place, member in enumerate(members):
        assert member.search_group is not None
        places[member.search_group].append(place)
    for search_group, own in places.items():
        yield search_group, [members[place] for place in own], logits[own]
