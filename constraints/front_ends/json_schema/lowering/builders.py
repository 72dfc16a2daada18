"""What arrays and objects are built by of which a schema says more than a plain one does, and what these ask.

Made when the first such schema is met: many have none, and to make all of this takes as long as to lower a small schema.
"""

from __future__ import annotations

from ..algebra.discriminators import Discriminators
from ..algebra.disjoint import Disjointness
from ..algebra.mixed_arrays import MixedArrays
from ..algebra.names import Names
from .containers import Containers
from .objects import Objects


class Builders:
    """Each for one schema and the grammar that it is lowered into."""

    def __init__(
        self, names: Names, disjointness: Disjointness, discriminators: Discriminators, mixed_arrays: MixedArrays,
        containers: Containers, objects: Objects,
    ) -> None:  # fmt: skip
        self.names, self.disjointness, self.discriminators = names, disjointness, discriminators
        self.mixed_arrays, self.containers, self.objects = mixed_arrays, containers, objects
