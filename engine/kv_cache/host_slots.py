"""Slots of host memory, where blocks wait that the cache has no room for. The block moved there longest ago is dropped first."""

from __future__ import annotations

from collections import OrderedDict

from .prefix_tree import Node


class HostSlots:
    """Which node's block is in which slot. A node that is held keeps its slot until it is kept again, or dropped."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self._free = list(range(num_slots - 1, -1, -1))
        self._nodes: OrderedDict[int, Node] = OrderedDict()  # slot -> node, without those that are held

    @property
    def num_used(self) -> int:
        return self.num_slots - len(self._free)

    @property
    def is_full(self) -> bool:
        return not self._free

    @property
    def oldest(self) -> Node | None:
        """The node that has to go for another one."""
        return next(iter(self._nodes.values()), None)

    def put(self, node: Node) -> int:
        """Give this node's block a slot; the caller has checked `is_full`."""
        node.slot = self._free.pop()
        self._nodes[node.slot] = node
        return node.slot

    def hold(self, node: Node) -> int:
        assert node.slot is not None
        self._nodes.pop(node.slot)
        return node.slot

    def keep(self, node: Node) -> None:
        assert node.slot is not None
        self._nodes[node.slot] = node

    def drop(self, node: Node) -> None:
        """Free this node's slot."""
        assert node.slot is not None
        self._nodes.pop(node.slot, None)
        self._free.append(node.slot)
        node.slot = None

    def validate(self) -> None:
        """Check the invariants while nothing is held; for tests."""
        assert sorted([*self._free, *self._nodes]) == list(range(self.num_slots))
        assert all(node.slot == slot and node.block is None for slot, node in self._nodes.items())
