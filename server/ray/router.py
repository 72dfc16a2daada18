"""Our policies as a request router of Ray Serve."""

from __future__ import annotations

import random
from array import array
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from ..cluster.asked import Asked
from ..cluster.policies import policy_of
from ..cluster.routing_key import RoutingKey

NO_KEY = RoutingKey()
MOST_OTHERS = 10  # that are asked at once whether they have room


class KnowledgeRouter(RequestRouter):
    """Asks a policy for an order, and tells it what replicas report of themselves. Each ingress has one, in one thread."""

    def initialize_state(self, policy: str = "prefix", **unknown: Any) -> None:
        """policy: the name of one of `POLICIES`."""
        self._policy = policy_of(policy)
        self._reports: dict[str, bytes] = {}

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        super().update_replicas(replicas)
        names = {each.replica_id.unique_id: each for each in replicas}
        self._policy.update(names)
        self._reports = {name: report for name, report in self._reports.items() if name in names}
        for name, replica in names.items():
            report = replica.routing_stats.get("facts")
            if report is not None and report != self._reports.get(name):
                self._reports[name] = report
                self._policy.reported(name, array("Q", report))

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        super().on_replica_actor_died(replica_id)
        self._policy.update(each.unique_id for each in self.curr_replicas)

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """One rank for each replica that the policy names, and one with some of the others, for when those are full."""
        if pending_request is not None:
            pending_request.routing_context.should_backoff = True  # when all are full
        by_name, loads = {each.replica_id.unique_id: each for each in candidate_replicas}, self._loads()
        ranking = self._policy.rank(_key_of(pending_request), lambda name: loads.get(name, 0))
        ranked = [by_name[name] for name in ranking if name in by_name]
        others = [each for each in candidate_replicas if each not in ranked]
        return [*([each] for each in ranked), random.sample(others, min(len(others), MOST_OTHERS))]

    def on_request_routed(self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any) -> None:
        self._policy.routed(_key_of(pending_request), replica_id.unique_id)

    def _loads(self) -> dict[str, int]:
        """Requests of each replica, as it told last, and those sent since. 0 where that is long ago: who is asked will tell."""
        return {each.unique_id: self.replica_queue_len_cache.get(each) or 0 for each in self.curr_replicas}


def _key_of(request: PendingRequest | None) -> RoutingKey:
    asked = request.args[0] if request is not None and request.args else None
    return asked.key if isinstance(asked, Asked) else NO_KEY
