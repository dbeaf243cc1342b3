"""One checker for each promise about tasks.

The checkers compare times. A call took effect at some moment between its invocation and its
response, and the checkers do not know when. So each of them reports only what is wrong for *every*
possible moment: two claims overlap if one of them certainly began before the other one can have
ended. A checker can miss a violation that is too short, but it never refuses a right history.

Terms:

* a *generation* is the number of a claim of one task: the first claim has 1, the next one 2;
* a claim is *live* from the moment when the store gives it until its lease ends, or until its
  holder finishes or releases the task;
* a claim is *stale* when a later claim exists, or when its holder has finished or released it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from .operation import Json, Operation, whole
from .violation import Violation

TOLERANCE_NS = 5_000_000
"""The store measures leases in whole milliseconds, and with another clock than the log."""

_USES = ("write", "renew", "finish", "release")
"""The calls that name a claim."""

_ENDS = ("finish", "release")


@dataclass(frozen=True)
class GivenClaim:
    """One task in the response to a claim."""

    task: str
    generation: int
    attempts: int
    operation: Operation

    def __str__(self) -> str:
        """Return the claim as the tool writes it, for example `ann:1`."""
        return f"{self.task}:{self.generation}"


@dataclass(frozen=True)
class FinalTask:
    """A task at the end of the history."""

    task: str
    status: str
    generation: int
    attempts: int
    effects: int
    """How many fenced writes were done for it."""


class TaskHistory:
    """All calls about the tasks of one queue, found by task and by claim."""

    def __init__(self, operations: Sequence[Operation], max_attempts: int) -> None:
        """Read the calls. The last one must be `list_tasks`."""
        self.max_attempts = max_attempts
        self.claims: dict[str, list[GivenClaim]] = defaultdict(list)
        """The claims of each task, in the order of their generations."""
        self.additions: dict[str, list[Operation]] = defaultdict(list)
        """The calls that added, or tried to add, each task."""
        self._uses: dict[tuple[str, int], list[Operation]] = defaultdict(list)
        self.final: dict[str, FinalTask] = {}
        self.listing: Operation | None = None
        for operation in operations:
            self._read(operation)
        for claims in self.claims.values():
            claims.sort(key=lambda claim: claim.generation)

    def _read(self, operation: Operation) -> None:
        if operation.verb == "add_tasks":
            for task in _texts(operation.arguments["tasks"]):
                self.additions[task].append(operation)
        elif operation.verb == "claim" and operation.succeeded:
            for claim in _claims_in(operation):
                self.claims[claim.task].append(claim)
        elif operation.verb in _USES:
            generation = whole(operation.arguments["generation"])
            self._uses[operation.target, generation].append(operation)
        elif operation.verb == "list_tasks" and operation.succeeded:
            self.listing = operation
            self.final = {state.task: state for state in _states_in(operation)}

    def all_claims(self) -> Iterator[GivenClaim]:
        """Yield every claim of every task."""
        for claims in self.claims.values():
            yield from claims

    def later_claims(self, claim: GivenClaim) -> Iterator[GivenClaim]:
        """Yield the claims of the same task that have a higher generation."""
        for other in self.claims[claim.task]:
            if other.generation > claim.generation:
                yield other

    def uses(self, claim: GivenClaim, *verbs: str) -> list[Operation]:
        """Return the calls that name this claim."""
        found = self._uses.get((claim.task, claim.generation), [])
        return [use for use in found if use.verb in verbs]

    def lease_grants(self, claim: GivenClaim) -> list[Operation]:
        """Return the calls that certainly gave this claim a lease: the claim and its renewals."""
        renewals = [use for use in self.uses(claim, "renew") if use.succeeded]
        return [claim.operation, *renewals]

    def live_until_ns(self, claim: GivenClaim) -> int:
        """Return until when this claim is certainly live, if no other claim ends it.

        The lease ends at the earliest its length after the last grant was *requested*. A call that
        ends or changes the lease may take effect as soon as it is requested.
        """
        last_grant = self.lease_grants(claim)[-1]
        limits = [last_grant.invoked_ns + _lease_ns(last_grant) - TOLERANCE_NS]
        for use in self.uses(claim, *_USES):
            is_end = use.verb in _ENDS and use.refusal is None
            is_unknown_renewal = use.verb == "renew" and use.may_have_happened
            if is_end or is_unknown_renewal:
                limits.append(use.invoked_ns)
        return min(limits)


def check_added_once(history: TaskHistory) -> Iterator[Violation]:
    """Check that a task is created once, however many calls add its ID."""
    for task, additions in history.additions.items():
        creators = []
        for addition in additions:
            if addition.succeeded and task in _texts(addition.response["created"]):
                creators.append(addition)
        if len(creators) > 1:
            explanation = f"{len(creators)} calls created the task {task}"
            yield Violation("added-once", explanation, tuple(creators))


def check_generations(history: TaskHistory) -> Iterator[Violation]:
    """Check that each claim of a task has a higher generation than all claims before it."""
    for claims in history.claims.values():
        for claim, following in combinations(claims, 2):
            shown = (claim.operation, following.operation)
            if claim.generation == following.generation:
                explanation = f"{claim} was given twice"
                yield Violation("generations", explanation, shown)
            elif following.operation.is_before(claim.operation):
                explanation = f"{following} was given before {claim}"
                yield Violation("generations", explanation, shown)


def check_one_holder(history: TaskHistory) -> Iterator[Violation]:
    """Check that a task is in at most one live claim at any time."""
    for claim in history.all_claims():
        live_until_ns = history.live_until_ns(claim)
        for later in history.later_claims(claim):
            responded_ns = later.operation.responded_ns
            if responded_ns is not None and responded_ns < live_until_ns:
                explanation = f"{later} was given while {claim} was live"
                shown = (*history.lease_grants(claim), later.operation)
                yield Violation("one-holder", explanation, shown)


def check_stale_claims(history: TaskHistory) -> Iterator[Violation]:
    """Check that a stale claim changes nothing: its writes, renewals and reports are refused."""
    for claim in history.all_claims():
        for use in history.uses(claim, *_USES):
            if not use.succeeded or _is_replayed(use):
                continue
            for later in history.later_claims(claim):
                if later.operation.is_before(use):
                    explanation = f"{use.verb} {claim} succeeded after {later} was given"
                    shown = (claim.operation, later.operation, use)
                    yield Violation("stale-claims", explanation, shown)
                    break


def check_ended_claims(history: TaskHistory) -> Iterator[Violation]:
    """Check that a claim changes nothing after its holder has finished or released the task.

    Only the same call again is allowed, which reports that nothing is left to do, and a replay.
    """
    for claim in history.all_claims():
        ends = [use for use in history.uses(claim, *_ENDS) if use.succeeded]
        for end in ends:
            for use in history.uses(claim, *_USES):
                is_allowed = use.verb == end.verb or _is_replayed(use)
                if use.succeeded and not is_allowed and end.is_before(use):
                    explanation = (
                        f"{use.verb} {claim} succeeded after {end.verb} had ended this claim"
                    )
                    yield Violation("ended-claims", explanation, (claim.operation, end, use))


def _is_replayed(use: Operation) -> bool:
    """Return whether a call changed nothing, and its response is the one of an earlier write.

    A client whose connection breaks repeats its write. If the claim has become stale meanwhile, the
    write may still have been done before that. So the store responds with the remembered result,
    which may be that of an earlier call with the same claim.
    """
    return use.verb == "write" and use.succeeded and use.response["replayed"] is True


def check_renewals(history: TaskHistory) -> Iterator[Violation]:
    """Check that a lease that has ended is not renewed."""
    for claim in history.all_claims():
        renewals = history.uses(claim, "renew")
        if any(renewal.may_have_happened for renewal in renewals):
            # Nobody knows when this lease ended.
            continue
        for grant, renewal in pairwise(history.lease_grants(claim)):
            assert grant.responded_ns is not None
            latest_end_ns = grant.responded_ns + _lease_ns(grant) + TOLERANCE_NS
            if renewal.invoked_ns > latest_end_ns:
                explanation = f"{claim} was renewed after its lease had ended"
                yield Violation("renewals", explanation, (grant, renewal))


def check_refusals(history: TaskHistory) -> Iterator[Violation]:
    """Check that the holder of a live claim is not refused."""
    for claim in history.all_claims():
        live_until_ns = history.live_until_ns(claim)
        for use in history.uses(claim, *_USES):
            if use.refusal is None or use.responded_ns is None:
                continue
            if use.responded_ns < live_until_ns:
                explanation = f"{use.verb} {claim} was refused although the claim was live"
                shown = (*history.lease_grants(claim), use)
                yield Violation("refusals", explanation, shown)


def check_attempts(history: TaskHistory) -> Iterator[Violation]:
    """Check that each claim counts as one attempt, up to the limit.

    The random clients never call `task retry`, so the attempts equal the generation.
    """
    for claim in history.all_claims():
        if claim.attempts != claim.generation:
            explanation = f"{claim} says that it is attempt {claim.attempts}"
            yield Violation("attempts", explanation, (claim.operation,))
        if claim.attempts > history.max_attempts:
            explanation = f"{claim} is one more attempt than the {history.max_attempts} allowed"
            yield Violation("attempts", explanation, (claim.operation,))


def check_drain(history: TaskHistory) -> Iterator[Violation]:
    """Check that in the end each added task is done or failed, and nothing else is there."""
    if history.listing is None:
        yield Violation("drain", "the history has no list of the tasks at its end")
        return
    for task, additions in history.additions.items():
        if task not in history.final and any(addition.succeeded for addition in additions):
            explanation = f"{task} was added, but it is not in the queue at the end"
            yield Violation("drain", explanation, tuple(additions))
    for state in history.final.values():
        if state.task not in history.additions:
            yield Violation("drain", f"{state.task} is in the queue, but no call added it")
        problem = _end_problem(history, state)
        if problem:
            shown = tuple(_all_calls_about(history, state.task))
            yield Violation("drain", f"{state.task} is {state.status}: {problem}", shown)


def _end_problem(history: TaskHistory, state: FinalTask) -> str:
    """Return why this cannot be the end of a task, or nothing."""
    claims = history.claims[state.task]
    finishes = _uses_of_all(history, claims, "finish")
    is_finished = any(finish.succeeded for finish in finishes)
    if state.status not in ("done", "failed"):
        return "it should be done or failed at the end"
    if state.status == "done" and not any(finish.refusal is None for finish in finishes):
        return "no call finished it"
    if state.status == "failed" and is_finished:
        return "a call finished it"
    if state.status == "failed" and state.attempts < history.max_attempts:
        return f"it had only {state.attempts} of {history.max_attempts} attempts"
    return ""


def check_finished_once(history: TaskHistory) -> Iterator[Violation]:
    """Check that a task is finished once, and is not claimed after that."""
    for task, claims in history.claims.items():
        finishes = []
        for finish in _uses_of_all(history, claims, "finish"):
            if finish.succeeded and finish.response["effect"] == "updated":
                finishes.append(finish)
        if len(finishes) > 1:
            explanation = f"{task} was finished {len(finishes)} times"
            yield Violation("finished-once", explanation, tuple(finishes))
        for finish in finishes:
            for claim in claims:
                if finish.is_before(claim.operation):
                    explanation = f"{task} was claimed again after it was done"
                    yield Violation("finished-once", explanation, (finish, claim.operation))


def check_effects(history: TaskHistory) -> Iterator[Violation]:
    """Check that the fenced write of a task happens once, whichever of its claims does it."""
    for state in history.final.values():
        writes = _uses_of_all(history, history.claims[state.task], "write")
        attempted = [write for write in writes if write.refusal is None]
        answered = [write for write in writes if write.succeeded]
        problem = _effect_problem(state.effects, attempted, answered)
        if problem:
            yield Violation("effects", f"the effect of {state.task} {problem}", tuple(attempted))
        yield from _wrong_results(answered)


def _effect_problem(
    effects: int, attempted: Sequence[Operation], answered: Sequence[Operation]
) -> str:
    """Return why there cannot be this number of effects, or nothing."""
    if effects > 1:
        return f"happened {effects} times"
    if effects == 0 and answered:
        return "was acknowledged, but it is not there"
    if effects == 1 and not attempted:
        return "is there, but no call wrote it"
    return ""


def _wrong_results(writes: Iterable[Operation]) -> Iterator[Violation]:
    """Yield a violation for each fenced write that did not return the result of the first one."""
    for write in writes:
        if write.response["value"] != 1:
            explanation = f"a write for {write.target} did not return the first result, 1"
            yield Violation("effects", explanation, (write,))


CHECKERS: tuple[Callable[[TaskHistory], Iterable[Violation]], ...] = (
    check_added_once,
    check_generations,
    check_one_holder,
    check_stale_claims,
    check_ended_claims,
    check_renewals,
    check_refusals,
    check_attempts,
    check_drain,
    check_finished_once,
    check_effects,
)


def check_tasks(operations: Sequence[Operation], max_attempts: int) -> list[Violation]:
    """Return everything that is wrong with the tasks of a history."""
    history = TaskHistory(operations, max_attempts)
    violations: list[Violation] = []
    for checker in CHECKERS:
        violations += checker(history)
    return violations


def count_claims(operations: Sequence[Operation]) -> Counter[str]:
    """Return how often each task was claimed, as far as the callers know."""
    claims: Counter[str] = Counter()
    for operation in operations:
        if operation.verb == "claim" and operation.succeeded:
            claims.update(claim.task for claim in _claims_in(operation))
    return claims


def _uses_of_all(
    history: TaskHistory, claims: Iterable[GivenClaim], *verbs: str
) -> list[Operation]:
    uses = []
    for claim in claims:
        uses += history.uses(claim, *verbs)
    return uses


def _all_calls_about(history: TaskHistory, task: str) -> list[Operation]:
    claims = history.claims[task]
    claiming = [claim.operation for claim in claims]
    return [*history.additions[task], *claiming, *_uses_of_all(history, claims, *_USES)]


def _lease_ns(grant: Operation) -> int:
    return whole(grant.arguments["lease_ms"]) * 1_000_000


def _claims_in(operation: Operation) -> Iterator[GivenClaim]:
    for facts in _records(operation.response["claimed"]):
        yield GivenClaim(
            task=str(facts["task"]),
            generation=whole(facts["generation"]),
            attempts=whole(facts["attempts"]),
            operation=operation,
        )


def _states_in(listing: Operation) -> Iterator[FinalTask]:
    for facts in _records(listing.response["tasks"]):
        yield FinalTask(
            task=str(facts["task"]),
            status=str(facts["status"]),
            generation=whole(facts["generation"]),
            attempts=whole(facts["attempts"]),
            effects=whole(facts["effects"]),
        )


def _records(value: Json) -> Iterator[dict[str, Json]]:
    assert isinstance(value, list)
    for record in value:
        assert isinstance(record, dict)
        yield record


def _texts(value: Json) -> list[str]:
    assert isinstance(value, list)
    return [str(text) for text in value]
