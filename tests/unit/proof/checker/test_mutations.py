"""The checker, tried on histories that were broken: every kind of break, at every place where it can be made, is caught, and by
the right name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from proof.checker.check import check
from proof.history.history import History
from proof.history.verdict import Kind
from tests.unit.proof.checker import disorder, double, drop, falsehood, impostors, last_words, spite, untruth, whereabouts
from tests.unit.proof.checker.edit import Broken
from tests.unit.proof.checker.histories import calm, plain, squall

Mutation = Callable[[History], Broken]
K = Kind

MUTATIONS: list[tuple[Mutation, set[Kind]]] = [
    (drop.drop_run, {K.MISSED}),
    (drop.drop_first_record, {K.LOST}),
    (drop.drop_end, {K.MISSED}),
    (drop.drop_grant, {K.UNEXPLAINED}),
    (drop.drop_barrier, {K.ORDER}),
    (drop.drop_version, {K.LOST}),
    (drop.drop_summary, {K.MISSED}),
    (drop.drop_fence, {K.UNEXPLAINED}),
    (drop.drop_effect, {K.LOST}),
    (drop.drop_step, {K.LOST}),
    (drop.drop_produced, {K.LOST}),
    (drop.drop_event, {K.UNEXPLAINED}),
    (drop.drop_input, {K.LOST, K.UNEXPLAINED}),
    (drop.drop_rejected, {K.LOST, K.MISSED}),
    (double.double_record, {K.DOUBLED}),
    (double.double_barrier, {K.DOUBLED}),
    (double.double_version, {K.DOUBLED}),
    (double.double_effect, {K.DOUBLED}),
    (double.double_step, {K.DOUBLED}),
    (double.double_produced, {K.DOUBLED}),
    (double.double_grant, {K.DOUBLED}),
    (double.early_record, {K.EARLY}),
    (double.early_summary, {K.EARLY}),
    (double.early_effect, {K.EARLY}),
    (double.early_version, {K.EARLY}),
    (double.late_version, {K.LATE}),
    (double.late_record, {K.LATE}),
    (double.late_summary, {K.LATE}),
    (double.late_effect, {K.UNEXPLAINED}),
    (disorder.reorder_life, {K.ORDER}),
    (disorder.reorder_due_times, {K.ORDER}),
    (disorder.reorder_barrier, {K.ORDER}),
    (disorder.reorder_versions, {K.ORDER}),
    (disorder.reorder_steps, {K.ORDER}),
    (disorder.reorder_effects, {K.ORDER}),
    (disorder.wrong_term, {K.ORDER}),
    (disorder.over_limit_in_ledger, {K.LIMIT}),
    (disorder.over_limit_in_effects, {K.LIMIT}),
    (disorder.repeat_recorded_step, {K.DOUBLED}),
    (disorder.refused_for_a_bug, {K.UNEXPLAINED}),
    (disorder.change_key, {K.DOUBLED}),
    (disorder.change_due_time, {K.UNEXPLAINED}),
    (disorder.change_end, {K.UNEXPLAINED}),
    (disorder.change_reason, {K.UNEXPLAINED}),
    (disorder.change_count, {K.UNEXPLAINED}),
    (untruth.cancelled_by_nobody, {K.UNEXPLAINED}),
    (untruth.cancelled_for_another_reason, {K.UNEXPLAINED}),
    (untruth.lost_too_early, {K.UNEXPLAINED}),
    (untruth.failed_for_no_reason, {K.UNEXPLAINED}),
    (untruth.failed_before_its_retries, {K.UNEXPLAINED}),
    (untruth.interrupted_by_nobody, {K.UNEXPLAINED}),
    (untruth.snoozed_by_nobody, {K.UNEXPLAINED}),
    (untruth.wait_for_long, {K.UNEXPLAINED}),
    (untruth.wait_for_a_whim, {K.UNEXPLAINED}),
    (untruth.refuse_for_another_reason, {K.LOST}),
    (untruth.refuse_what_was_accepted, {K.UNEXPLAINED}),
    (untruth.refuse_a_trigger, {K.LOST}),
    (untruth.change_constants, {K.UNEXPLAINED}),
    (whereabouts.change_process, {K.UNEXPLAINED}),
    (whereabouts.end_its_life_before, {K.UNEXPLAINED}),
    (whereabouts.grant_late, {K.LATE}),
    (whereabouts.decide_ahead, {K.ORDER}),
    (whereabouts.drop_offer, {K.UNEXPLAINED}),
    (whereabouts.change_offer, {K.UNEXPLAINED}),
    (whereabouts.drop_signal, {K.EARLY}),
    (whereabouts.grant_to_another, {K.UNEXPLAINED}),
    (whereabouts.change_worker, {K.UNEXPLAINED}),
    (whereabouts.change_result, {K.LOST}),
    (whereabouts.change_produced, {K.LOST}),
    (spite.run_outside_the_window, {K.UNEXPLAINED}),
    (spite.run_what_was_overtaken, {K.UNEXPLAINED}),
    (spite.run_too_many, {K.UNEXPLAINED}),
    (spite.call_it_another_trigger, {K.UNEXPLAINED}),
    (spite.go_on_after_the_last_loss, {K.UNEXPLAINED}),
    (spite.count_no_loss, {K.UNEXPLAINED}),
    (spite.outlast_its_timeout, {K.UNEXPLAINED}),
    (spite.start_without_jitter, {K.EARLY}),
    (spite.jitter_to_another_instant, {K.UNEXPLAINED}),
    (spite.promise_another_jitter, {K.UNEXPLAINED}),
    (spite.end_a_wait_early, {K.EARLY}),
    (spite.meet_a_bug, {K.UNEXPLAINED}),
    (falsehood.change_field, {K.UNEXPLAINED, K.ORDER}),
    (falsehood.change_field_throughout, {K.UNEXPLAINED, K.ORDER}),
    (falsehood.change_reason_of_going_on, {K.UNEXPLAINED}),
    (falsehood.write_again_for_nothing, {K.UNEXPLAINED}),
    (falsehood.skip_a_predecessor, {K.UNEXPLAINED}),
    (falsehood.wrong_generation, {K.ORDER}),
    (falsehood.tell_another_deadline, {K.UNEXPLAINED}),
    (falsehood.offer_for_another_trigger, {K.UNEXPLAINED}),
    (impostors.write_for_another, {K.UNEXPLAINED}),
    (impostors.write_past_the_fence, {K.UNEXPLAINED}),
    (impostors.record_after_the_end, {K.ORDER}),
    (impostors.happen_after_its_record, {K.ORDER}),
    (impostors.drop_body, {K.LOST}),
    (impostors.double_body, {K.DOUBLED}),
    (impostors.share_a_key, {K.DOUBLED}),
    (impostors.skip_what_may_overlap, {K.UNEXPLAINED}),
    (impostors.try_too_often, {K.UNEXPLAINED}),
    (impostors.try_what_was_ruled_out, {K.UNEXPLAINED}),
    (impostors.run_by_hand_of_another_version, {K.UNEXPLAINED}),
    (impostors.go_on_after_a_cancel, {K.UNEXPLAINED}),
    (impostors.end_what_nobody_forgot, {K.UNEXPLAINED}),
    (last_words.stop_too_early, {K.UNEXPLAINED}),
    (last_words.stop_at_first, {K.UNEXPLAINED}),
    (last_words.stop_with_claims, {K.UNEXPLAINED}),
]


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.parametrize(("mutate", "kinds"), MUTATIONS, ids=[mutate.__name__ for mutate, _ in MUTATIONS])
def test_each_break_is_caught_wherever_it_is_made(mutate: Mutation, kinds: set[Kind]) -> None:
    tried, slipped = 0, []
    for history in (calm(1), squall(1), plain(1)):
        for place, broken in mutate(history):
            tried += 1
            found = {violation.kind for violation in check(broken).violations}
            if not found & kinds:
                slipped.append(f"{place}: {sorted(found)}")
    assert tried, "there is no place for it"
    assert slipped == [], f"{len(slipped)} of {tried} slipped through"
