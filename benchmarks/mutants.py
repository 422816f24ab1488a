"""Change the source in one place after the other, and see whether the tests notice.

Each mutant is made in a copy of the package, and the tests that should kill it are run against that copy. The golden
runs are left out: they notice any change of a decision, and do not say what is wrong.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from measure import Row, arguments, report

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rareswitch"
#: Seconds after which a mutant that does not end is given up, and so found.
PATIENCE = 900
#: Share of the mutants that must be killed.
NEEDED = 0.95
#: Mutants at a time.
TOGETHER = 2


class Mutant(NamedTuple):
    """One change of the source."""

    file: str
    #: What is wrong with it.
    what: str
    #: Text that the file has once, and what takes its place.
    old: str
    new: str
    #: Of the folder tests: files, or tests in them.
    tests: str
    #: Why no test can tell the difference, if so.
    equivalent: str = ""

    def apply(self, package: Path) -> None:
        """Change the copy of the package, and forget the machine code that may be made of what is changed."""
        path = package / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise SystemExit(f"{self.file} has {self.old!r} {text.count(self.old)} times; a mutant needs it once.")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        if "@compiled" in text:  # its code is also part of the kernels that call these
            for kind in ("nbi", "nbc"):
                for cached in package.rglob(f"*.{kind}"):
                    cached.unlink()


MUTANTS = (
    Mutant(
        "learner/planning.py",
        "a click teaches as much as a linear reward",
        "weights = None if link is None else paid * (1.0 - paid)",
        "weights = None",
        "unit/learner/test_planning.py::test_clicks_teach_as_much_as_their_rates_allow",
    ),
    Mutant(
        "learner/planning.py",
        "as many truths with many features as with few",
        "truth_count = max(64, min(TRUTHS, TRUTH_NUMBERS // dim**2))",
        "truth_count = TRUTHS",
        "unit/learner/test_planning.py::test_with_many_features_fewer_truths_are_tried_out",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "a certificate of clicks in logits",
        "STEEPEST = 0.25",
        "STEEPEST = 1.0",
        "unit/learner/test_evidence.py::test_a_certificate_of_clicks_is_a_quarter_of_that_in_logits",
    ),
    Mutant(
        "learner/reserve.py",
        "policies kept back are spent as soon as others",
        "FAR_UNLIKE = 6.0",
        "FAR_UNLIKE = 3.0",
        "unit/learner/test_reserve.py::test_policies_kept_back_wait_for_what_is_further_from_all_before",
    ),
    Mutant(
        "learner/reserve.py",
        "a direction seen once is known",
        "KNOWN = 5.0",
        "KNOWN = 0.5",
        "unit/learner/test_reserve.py::test_a_direction_with_fewer_than_five_decisions_is_hardly_known",
    ),
    Mutant(
        "learner/foresight.py",
        "a rate is claimed for batches that their features ended",
        "return not proves and super()._ends_freely",
        "return super()._ends_freely",
        "unit/learner/test_learner.py::test_learners_that_look_hold_whenever_they_change",
    ),
    Mutant(
        "learner/certificate.py",
        "intervals that contradict each other certify",
        "if (survivors & (lower > upper)).any():",
        "if (survivors & (lower > upper + 9.0)).any():",
        "unit/learner/test_certificate.py::test_intervals_that_contradict_each_other_certify_nothing",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "rewards that are all alike teach",
        "or ended.sums[0].all_alike:",
        "or ended.sums[0].count < 0:",
        "unit/learner/test_logistic.py::test_while_all_rewards_are_the_same_the_first_policy_stays",
    ),
    Mutant(
        "env/table_features.py",
        "columns that do not fit are kept",
        "if total + blocks * field.layout.columns > columns:",
        "if total > columns:",
        "unit/env/test_tables.py::test_columns_of_choices_that_do_not_fit_are_told",
    ),
    Mutant(
        "design/frank_wolfe.py",
        "the certificate is loosened",
        "certified = v <= (1.0 + tol) *",
        "certified = v <= (1.0 + 4.0 * tol) *",
        "unit/design/test_frank_wolfe.py::test_the_certificate_holds",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "the floor is not cut in the last batch",
        "scale, share = 0.0, LAST_SHARE * told.floor",
        "scale, share = 0.0, told.floor",
        "unit/learner/test_foresight.py::test_every_surviving_arm_keeps_its_floor",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "the same normals in every batch's draws",
        'normals(told.seed, "posterior", ended.start, 1,',
        'normals(told.seed, "posterior", 0, 1,',
        "unit/learner/test_foresight.py::test_each_batch_has_draws_of_its_own",
    ),
    Mutant(
        "learner/grids.py",
        "the adaptive grid takes 2w for 4w",
        "max(4.0 * width, 1e-12)",
        "max(2.0 * width, 1e-12)",
        "unit/learner/test_grids.py::test_an_adaptive_batch_costs_what_the_first_may_cost",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "draws are not spread as planned",
        "draws = draws + scale * belief.noise * z",
        "draws = draws + belief.noise * z",
        "unit/learner/test_foresight.py::test_draws_are_spread_as_planned",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "arms are eliminated after fewer decisions than parameters",
        "> told.dim + 1:",
        "> 0:",
        "unit/learner/test_foresight.py::test_few_decisions_eliminate_nothing",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "the intervals forget the dimension of θ",
        "norm = noise * math.sqrt(self.settings.dim / ridge)",
        "norm = noise / math.sqrt(ridge)",
        "unit/learner/test_foresight.py::test_the_intervals_behind_the_floor",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "the last batch is planned too, and not greedy",
        "if len(ended.ahead) > 1:",
        "if len(ended.ahead) > 0:",
        "unit/learner/test_foresight.py::test_exploration_fades_and_the_last_batch_is_greedy",
    ),
    Mutant(
        "learner/planning.py",
        "batches that are played as one learn nothing on the way",
        "charged.append(float((group * (known / begins)).sum()))",
        "charged.append(float(played[-1]))",
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/planning.py",
        "a batch is judged on the sets it was learned on",
        "half = halves[later % len(halves)]",
        "half = halves[0]",
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/planning.py",
        "batches to come cost the same however long",
        "cost += charged[later] * regret",
        "cost += regret",
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/planning.py",
        "exploration costs nothing",
        "cost = lengths[0] * now",
        "cost = 0.0 * now",
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/planning.py",
        "greedy batches teach nothing",
        "precisions = precisions + gained",
        "precisions = precisions + 0.0 * gained",
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/planning.py",
        "the noise of a batch grows with its length",
        "np.sqrt(share) * belief.noise",
        "share * belief.noise",
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/planning.py",
        "the noise of later batches is that of the truths",
        'shocks = normals(seed, "plan later", update,',
        'shocks = normals(seed, "plan", update,',
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/planning.py",
        "every update plans with the same truths",
        'z = normals(seed, "plan", update, 1,',
        'z = normals(seed, "plan", 0, 1,',
        "unit/learner/test_planning.py::test_prospects_are_worked_out_exactly",
    ),
    Mutant(
        "learner/thompson.py",
        "the same normals in every policy",
        'normals(self.seed, "posterior", start, 1,',
        'normals(self.seed, "posterior", 0, 1,',
        "unit/learner/test_thompson.py::test_each_policy_has_draws_of_its_own",
    ),
    Mutant(
        "learner/clocks.py",
        "a determinant that has grown to C by rounding has not",
        "return self.factor * (1.0 - TOLERANCE)",
        "return self.factor * (1.0 + TOLERANCE)",
        "unit/learner/test_clocks.py::test_exact_ties_of_the_determinant_count_as_grown",
    ),
    Mutant(
        "learner/clocks.py",
        "the bound on switches forgets the dimension",
        "growth = dim * math.log1p(self.horizon / (dim * ridge))",
        "growth = math.log1p(self.horizon / (dim * ridge))",
        "unit/learner/test_layered.py::test_switches_stay_below_the_explicit_bound",
    ),
    Mutant(
        "learner/clocks.py",
        "a lesson is due one decision early",
        "return int(taught[0]) + 1 if len(taught)",
        "return int(taught[0]) if len(taught)",
        "unit/sim/test_compiled.py::test_walking_is_the_loop",
    ),
    Mutant(
        "learner/statistics.py",
        "the halves hang on the hash that samples go by",
        'uniforms_at(0, "half", keys) < 0.5',
        'uniforms_at(0, "sample", keys) < 0.5',
        "unit/learner/test_summary.py::test_samples_and_halves_are_uniform",
    ),
    Mutant(
        "learner/statistics.py",
        "designs are learned on the half that estimates",
        "return first, ~first",
        "return first, first",
        "unit/learner/test_batched.py::test_one_half_of_a_batch_is_summed_and_the_other_sampled",
    ),
    Mutant(
        "learner/statistics.py",
        "one warm batch less",
        "if batch <= self.warm_batches:",
        "if batch < self.warm_batches:",
        "unit/learner/test_batched.py::test_warm_batches_are_summed_whole_and_not_sampled",
    ),
    Mutant(
        "learner/statistics.py",
        "layers are taught by arms that were eliminated",
        "kept = policy.survivors(sets) if policy.eliminations else sets.alive",
        "kept = sets.alive",
        "unit/learner/test_layered.py::test_layers_are_taught_by_the_arms_that_survive",
    ),
    Mutant(
        "learner/summary.py",
        "samples take the largest hashes",
        "sample_order(keys)))[:size]",
        "sample_order(keys)))[-size:]",
        "unit/learner/test_summary.py::test_the_sample_has_the_smallest_hashes",
    ),
    Mutant(
        "learner/summary.py",
        "samples grow as they are added",
        "min(self.size, other.size),",
        "self.size + other.size,",
        "property/test_summaries.py::test_any_split_gives_the_same_sample",
    ),
    Mutant(
        "learner/summary.py",
        "decisions in common are added twice",
        "if len(np.unique(keys, axis=0)) < len(keys):",
        "if len(np.unique(keys, axis=0)) > len(keys):",
        "unit/learner/test_summary.py::test_summaries_with_decisions_in_common_are_not_added",
    ),
    Mutant(
        "learner/summary.py",
        "the sample of the second of two summaries is lost",
        "samples[0] + samples[1] if len(samples) == 2",
        "samples[0] if len(samples) == 2",
        "property/test_summaries.py::test_any_split_gives_the_same_summary",
    ),
    Mutant(
        "learner/learner.py",
        "decisions that turn up late do not move the count",
        "start, updates = state.start + moved + summary.decided, state.updates",
        "start, updates = state.start + summary.decided, state.updates",
        "unit/learner/test_learner.py::test_decisions_that_turn_up_late_move_the_count",
    ),
    Mutant(
        "learner/past.py",
        "late rows with fewer rewards replace those with more",
        "if summary.decided < old.decided or summary.rewarded < old.rewarded:",
        "if summary.decided < old.decided:",
        "unit/learner/test_learner.py::test_fewer_rows_than_were_counted_are_refused",
    ),
    Mutant(
        "learner/past.py",
        "late rewards do not reach the sums",
        "return tuple(past), reduce(added, (batch.stats for batch in (*state.before, *past)))",
        "return tuple(past), state.sums",
        "unit/learner/test_learner.py::test_late_rewards_count_as_if_they_had_been_there",
    ),
    Mutant(
        "learner/past.py",
        "late rows of a batch are taken twice",
        "if past[place] is not state.past[place]:",
        "if past[place] is None:",
        "unit/learner/test_learner.py::test_late_rewards_count_once_however_often_they_are_given",
    ),
    Mutant(
        "learner/past.py",
        "late rewards enter the sums where batches must be fresh",
        "if not late or not pooled:",
        "if not late:",
        "unit/learner/test_learner.py::test_late_rewards_are_only_counted_where_a_proof_needs_fresh_batches",
    ),
    Mutant(
        "learner/learner.py",
        "a policy that decides as an earlier one does not get an edition",
        "if policy.id in {state.policy.id, *(batch.policy_id for batch in past)}:",
        "if policy.id == state.policy.id:",
        "unit/learner/test_learner.py::test_policies_that_decide_alike_have_ids_of_their_own",
    ),
    Mutant(
        "learner/attribution.py",
        "a decision as old as the window still waits",
        "waiting = np.asarray(moment - made < window)",
        "waiting = np.asarray(moment - made <= window)",
        "unit/learner/test_summary.py::test_decisions_in_their_window_wait_even_if_their_reward_is_known",
    ),
    Mutant(
        "learner/attribution.py",
        "a reward as late as the window has expired",
        "np.asarray(in_seconds(reward_times) - made > window)",
        "np.asarray(in_seconds(reward_times) - made >= window)",
        "unit/learner/test_summary.py::test_decisions_in_their_window_wait_even_if_their_reward_is_known",
    ),
    Mutant(
        "learner/attribution.py",
        "fast rewards count before their window is over",
        "known &= ~waiting & ~expired",
        "known &= ~expired",
        "unit/learner/test_summary.py::test_decisions_in_their_window_wait_even_if_their_reward_is_known",
    ),
    Mutant(
        "learner/attribution.py",
        "rewards that came after the window count",
        "expired &= known & ~waiting",
        "expired &= waiting",
        "unit/learner/test_summary.py::test_decisions_in_their_window_wait_even_if_their_reward_is_known",
    ),
    Mutant(
        "learner/learner.py",
        "the summary of another policy is learned from",
        "if summary.policy_id != state.policy.id:",
        'if summary.policy_id == "":',
        "conformance/test_learners.py::test_rows_that_do_not_belong_here_are_refused",
    ),
    Mutant(
        "learner/rows.py",
        "two rewards of one decision do not contradict each other",
        "wrong |= (self.rewards[order] != self.rewards[firsts]) & ~np.isnan(self.rewards[order])",
        "wrong |= np.isnan(self.features[order]).any(axis=1)",
        "unit/learner/test_rows.py::test_rows_that_contradict_each_other_are_refused",
    ),
    Mutant(
        "learner/rows.py",
        "the copy without a reward is kept",
        "order = np.lexsort((*times, self._set_of() < 0, np.isnan(self.rewards),",
        "order = np.lexsort((*times, self._set_of() < 0, ~np.isnan(self.rewards),",
        "unit/learner/test_rows.py::test_copies_are_one_decision_and_a_reward_completes_its_row",
    ),
    Mutant(
        "learner/forecast.py",
        "a forecast is spread over one batch more",
        "** (1.0 / left)",
        "** (1.0 / (left + 1))",
        "unit/learner/test_forecast.py::test_a_number_is_spread_over_the_policies_that_are_left",
    ),
    Mutant(
        "learner/grids.py",
        "batches grow by one factor too much",
        "round(total * (self.factor - 1.0))",
        "round(total * self.factor)",
        "unit/learner/test_grids.py::test_a_growing_grid_follows_what_came",
    ),
    Mutant(
        "learner/grids.py",
        "no room is left for the batches that follow",
        "high = horizon - (len(ends) - i)",
        "high = horizon",
        "unit/learner/test_grids.py::test_every_grid_is_increasing_and_ends_at_the_horizon",
    ),
    Mutant(
        "learner/communication.py",
        "neighbours that are no siblings are added",
        "if left.level != right.level or left.index % 2 or right.index",
        "if left.level != right.level or right.index",
        "unit/learner/test_communication.py::test_a_tree_adds_siblings_only",
    ),
    Mutant(
        "learner/communication.py",
        "the hash of a report is not compared",
        "if hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:",
        "if len(data) < DIGEST:",
        "unit/learner/test_communication.py::test_no_flipped_bit_gets_through",
    ),
    Mutant(
        "learner/communication.py",
        "a second report that differs is passed over",
        "if self._reports.setdefault(found.agent, data) != data:",
        "if self._reports.setdefault(found.agent, data) is None:",
        "unit/learner/test_communication.py::test_reports_that_do_not_fit_are_refused",
    ),
    Mutant(
        "learner/encoding.py",
        "the hash of a summary is not compared",
        'if not found or _summaries_to_bytes(found, meta["schema"]) != data:',
        "if not found:",
        "unit/learner/test_summary.py::test_damaged_summaries_are_refused",
    ),
    Mutant(
        "learner/layered.py",
        "a layer that is frozen anew keeps its old determinant",
        'kept["frozen_gram"][k] = ended.sums[k].gram',
        'kept["frozen_gram"][k] += 0.0',
        "unit/learner/test_layered.py::test_rarely_switch_is_algorithm_6",
    ),
    Mutant(
        "learner/rarely_switch.py",
        "all of δ is spent on the first layer",
        "first_level=self.self_normalized(delta=share),",
        "first_level=self.self_normalized(),",
        "unit/learner/test_layered.py::test_rarely_switch_has_the_widths_of_its_mode",
    ),
    Mutant(
        "learner/rarely_switch.py",
        "the layers' accuracies are off by one",
        "0.5 ** np.arange(kappa + 1)",
        "0.5 ** np.arange(1, kappa + 2)",
        "unit/learner/test_layered.py::test_rarely_switch_is_algorithm_6",
    ),
    Mutant(
        "learner/falcon.py",
        "the error of an epoch has no tail",
        "(math.sqrt(self.dim) + tail)) ** 2",
        "math.sqrt(self.dim)) ** 2",
        "unit/learner/test_companions.py::test_falcon_weighs_by_the_last_epoch_alone",
    ),
    Mutant(
        "learner/batched.py",
        "batches are judged by all decisions so far",
        "(stats,) = ended.batch.stats",
        "(stats,) = ended.sums",
        "unit/learner/test_batched.py::test_decisions_are_those_of_the_printed_algorithm",
    ),
    Mutant(
        "learner/batch_linucb_dg.py",
        "the designer is told another λ",
        "regularization=1.0 / told.horizon",
        "regularization=1.0",
        "unit/learner/test_batched.py::test_the_designer_is_shown_what_the_policy_leaves",
    ),
    Mutant(
        "learner/linucb.py",
        "intervals do not widen with the determinant",
        "alpha = self.level.multiplier(log_growth(precision, ridge))",
        "alpha = self.level.multiplier(0.0 * log_growth(precision, ridge))",
        "unit/learner/test_linucb.py::test_a_stale_learner_is_optimistic_about_all_that_came_before",
    ),
    Mutant(
        "learner/kernels.py",
        "of arms that tie the last is best",
        "higher = scores[s, k, j] > best[j]",
        "higher = scores[s, k, j] >= best[j]",
        "unit/learner/test_planning.py::test_of_arms_that_tie_the_first_available_one_is_best",
    ),
    Mutant(
        "policy/kernels.py",
        "the propensity is the running sum",
        "propensities[s] = probabilities[s, chosen]",
        "propensities[s] = total",
        "unit/policy/test_policy.py::test_decisions_depend_on_their_own_set_and_id_alone",
    ),
    Mutant(
        "policy/kernels.py",
        "propensities leave the explorer out",
        "(1.0 - share) * main[s, i] + share * explorer[s, i]",
        "(1.0 - share) * main[s, i]",
        "conformance/test_samplers.py::test_probabilities_live_on_the_living_arms",
    ),
    Mutant(
        "policy/kernels.py",
        "arms that are not there count in inverse gaps",
        "share = 1.0 / (left + gamma *",
        "share = 1.0 / (arm_count + gamma *",
        "unit/learner/test_companions.py::test_inverse_gaps_by_hand",
    ),
    Mutant(
        "policy/kernels.py",
        "the last elimination alone counts",
        "            if left > 1:\n                length = padded_length(left)",
        "            if left > 1 and r == estimates.shape[0] - 1:\n                length = padded_length(left)",
        "unit/policy/test_policy.py::test_survivors_are_those_of_the_printed_rule",
    ),
    Mutant(
        "policy/kernels.py",
        "the last of a number of draws that four does not divide is left out",
        "for m in range(count // 4 * 4, count):",
        "for m in range(count // 4 * 4, count - 1):",
        "conformance/test_samplers.py::test_probabilities_live_on_the_living_arms",
    ),
    Mutant(
        "policy/elimination.py",
        "intervals without their multiplier",
        "root = multiplier * inverse_root(",
        "root = inverse_root(",
        "unit/learner/test_foresight.py::test_the_intervals_behind_the_floor",
    ),
    Mutant(
        "policy/policy.py",
        "decisions do not hang on the seed",
        'stream_key(seed, "decide")',
        'stream_key(0 * seed, "decide")',
        "unit/policy/test_policy.py::test_decisions_are_those_that_were_recorded",
    ),
    Mutant(
        "policy/encoding.py",
        "the id of a policy leaves its edition out",
        "    if policy.edition:",
        "    if policy.edition < 0:",
        "unit/learner/test_learner.py::test_policies_that_decide_alike_have_ids_of_their_own",
    ),
    Mutant(
        "policy/encoding.py",
        "arrays that belong to nothing are let be",
        "    if unused:\n",
        "    if unused is None:\n",
        "unit/policy/test_files.py::test_careful_edits_are_refused_signed_or_not",
        "the file is then not in canonical form, and is refused all the same",
    ),
    Mutant(
        "policy/signing.py",
        "a signature is not compared",
        "    if not matches:\n",
        "    if matches is None:\n",
        "unit/policy/test_files.py::test_hmac_signatures",
    ),
    Mutant(
        "log/reading.py",
        "rows of unique ids are summed once a window",
        "return ~repeated & (task.low == 0.0), repeated",
        "return ~repeated, repeated",
        "unit/log/test_log_summary.py::test_many_rows_are_summed_where_they_are_read",
    ),
    Mutant(
        "log/reduction.py",
        "repeated ids are not found",
        "again = hashes[1:] == hashes[:-1]",
        "again = hashes[1:] < hashes[:-1]",
        "unit/log/test_log_summary.py::test_ids_are_compared_where_they_may_occur_twice",
    ),
    Mutant(
        "log/reduction.py",
        "an id at the end of one part and the beginning of another is not compared",
        "span.rise and before < span.low and",
        "span.rise and before <= span.low and",
        "unit/log/test_log_summary.py::test_ids_are_compared_where_they_may_occur_twice",
    ),
    Mutant(
        "log/block.py",
        "an id at the end of one block and the beginning of the next is not compared",
        "rises = self.high < other.low and",
        "rises = self.high <= other.low and",
        "unit/log/test_log_summary.py::test_an_id_on_both_sides_of_a_block_is_one_decision",
    ),
    Mutant(
        "log/reduction.py",
        "a part that changes while it is read is not noticed",
        "if (read.rows, read.size) != self.parts[part][:2]:",
        "if read.rows < 0:",
        "unit/log/test_log_summary.py::test_a_part_that_changes_while_it_is_read_is_noticed",
    ),
    Mutant(
        "log/reduction.py",
        "late rows are used although they shall not be",
        "if late and past.count(name) == 1}",
        "if past.count(name) == 1}",
        "unit/log/test_log_summary.py::test_late_rows_must_be_the_whole_batch",
    ),
    Mutant(
        "learner/rows.py",
        "of the rows of a decision any counts, not the earliest",
        "times = [one for one in (self.reward_times, self.times) if one is not None]",
        "times: list[Any] = []",
        "unit/log/test_log_summary.py::test_of_the_copies_of_a_reward_the_earliest_counts",
    ),
    Mutant(
        "learner/levels.py",
        "a level that leaves no digits is taken",
        "if not intercept and 8.0 *",
        "if intercept and 8.0 *",
        "unit/learner/test_levels.py::test_numbers_whose_sums_would_lose_them_are_refused",
    ),
    Mutant(
        "learner/levels.py",
        "of two parts the narrower counts",
        "return Extent(min(self.low, other.low), max(self.high, other.high),",
        "return Extent(max(self.low, other.low), min(self.high, other.high),",
        "unit/learner/test_levels.py::test_a_small_part_of_a_batch_may_be_alike",
    ),
    Mutant(
        "learner/encoding.py",
        "room for rounding looks like a row too many",
        "rank = stats.count + (stats.shift != 0.0)",
        "rank = stats.count",
        "unit/learner/test_encoding.py::test_equal_rewards_whose_level_was_taken_off_come_back",
    ),
    Mutant(
        "learner/certificate.py",
        "a certificate of the loosest intervals",
        "upper, lower = np.minimum(upper, values + widths), np.maximum(lower, values - widths)",
        "upper, lower = np.minimum(upper, values), np.maximum(lower, values)",
        "statistical/test_foresight_theory.py::test_the_theorem_in_a_seeded_run",
    ),
    Mutant(
        "learner/planned_exploration.py",
        "proved intervals of all batches together",
        "batch_elimination(ended.batch.stats[0], self.proved)",
        "batch_elimination(reduce(add, batches), self.proved)",
        "statistical/test_foresight_theory.py",
    ),
    Mutant(
        "footers.py",
        "the seal of a part is not compared",
        "if seal_holds(_footer(file)) is False:",
        "if seal_holds(_footer(file)) is None:",
        "unit/test_footers.py",
    ),
    Mutant(
        "policy/signing.py",
        "a signature of any scheme is compared",
        'if signature.get("scheme") != scheme:',
        'if signature.get("scheme") is None:',
        "unit/policy/test_files.py",
    ),
    Mutant(
        "log/log_summary.py",
        "late rows that lack decisions are taken for the whole batch",
        "new >= 0 and summary.decided >= batch.decided:",
        "new >= 0:",
        "unit/log/test_log_summary.py::test_where_batches_must_be_fresh_late_rewards_are_counted",
    ),
    Mutant(
        "log/log_summary.py",
        "contradictions are passed over",
        "if read.conflicting and not conflicts:",
        "if read.conflicting and conflicts is None:",
        "unit/log/test_log_summary.py::test_rows_that_contradict_each_other_are_not_passed_over",
    ),
    Mutant(
        "log/log_summary.py",
        "rewards that wait are counted as missing too",
        "unrewarded=summary.missing - summary.waiting - summary.expired,",
        "unrewarded=summary.missing - summary.expired,",
        "unit/log/test_log_summary.py::test_a_window_lets_all_decisions_wait_equally_long",
    ),
    Mutant(
        "log/log_summary.py",
        "rows in conflict are counted as copies too",
        "copies=read.rows[current] - summary.decided - read.conflicting_rows[current],",
        "copies=read.rows[current] - summary.decided,",
        "unit/log/test_log_summary.py::test_everything_that_befalls_a_log_is_counted_and_handled",
    ),
    Mutant(
        "log/block.py",
        "a propensity of 0 is taken",
        "bad = ~((values > 0.0) & (values <= 1.0))",
        "bad = ~((values >= 0.0) & (values <= 1.0))",
        "unit/log/test_log_summary.py::test_a_bad_value_is_named_with_file_and_row",
    ),
    Mutant(
        "log/block.py",
        "timestamps are read in another unit",
        "whole.to_numpy(zero_copy_only=False) / 1e6)",
        "whole.to_numpy(zero_copy_only=False) / 1e3)",
        "unit/log/test_log_summary.py::test_a_window_lets_all_decisions_wait_equally_long",
    ),
    Mutant(
        "log/block.py",
        "vectors outside of the unit ball are taken",
        "self.refuse(lengths > 1.0 + 1e-9,",
        "self.refuse(lengths > 10.0,",
        "unit/log/test_log_summary.py::test_what_a_learner_is_not_made_for_is_named",
    ),
    Mutant(
        "engine/engine.py",
        "a shard is tried once more than said",
        "if lost and before + lost < self.engine.tries:",
        "if lost and before + lost <= self.engine.tries:",
        "unit/engine/test_processes.py::test_a_shard_that_kills_every_worker_is_given_up",
    ),
    Mutant(
        "engine/engine.py",
        "the shard of a lost worker is not repeated",
        "if lost and before + lost < self.engine.tries:",
        "if lost and before + lost < 1:",
        "unit/engine/test_processes.py::test_many_killed_workers_change_nothing",
    ),
    Mutant(
        "engine/engine.py",
        "every start counts as a retry",
        "self.engine.retries += shard[2] > 0",
        "self.engine.retries += 1",
        "unit/engine/test_processes.py::test_many_killed_workers_change_nothing",
    ),
    Mutant(
        "engine/engine.py",
        "one shard more runs than there are workers",
        "len(self.engine._running) < self.engine.workers:",
        "len(self.engine._running) <= self.engine.workers:",
        "unit/engine/test_engines.py::test_no_more_shards_run_than_there_are_workers",
    ),
    Mutant(
        "engine/engine.py",
        "shards are taken far ahead",
        "taken < number + self.engine._ahead *",
        "taken < number + 50 + self.engine._ahead *",
        "unit/engine/test_engines.py::test_shards_are_taken_as_they_are_needed",
    ),
    Mutant(
        "engine/engine.py",
        "two maps at a time",
        "if not self.engine._free.acquire(blocking=False):",
        "if self.engine._free.acquire(blocking=False) is None:",
        "unit/engine/test_engines.py::test_one_map_at_a_time",
    ),
    Mutant(
        "engine/processes.py",
        "workers see Ctrl-C",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "signal.signal(signal.SIGINT, signal.SIG_DFL)",
        "unit/engine/test_processes.py::test_a_single_worker_has_one_thread_and_ignores_ctrl_c",
    ),
    Mutant(
        "engine/processes.py",
        "workers outlive a program that was killed",
        "target=lambda: os._exit(parent.join() or 1)",
        "target=lambda: parent.join()",
        "unit/engine/test_scripts.py::test_workers_do_not_outlive_a_program_that_was_killed",
    ),
    Mutant(
        "engine/processes.py",
        "the environment stays changed",
        "        os.environ.update(before)\n",
        "        before.clear()\n",
        "unit/engine/test_processes.py::test_a_single_worker_has_one_thread_and_ignores_ctrl_c",
    ),
    Mutant(
        "engine/pickling.py",
        "the traceback of a worker is lost",
        'raised.add_note(f"raised by {where}, in a worker:\\n{text}")',
        'raised.add_note(f"raised by {where}")',
        "unit/engine/test_processes.py::test_what_cannot_be_sent",
    ),
    Mutant(
        "store/folder_files.py",
        "a file that was changed is taken",
        'if _digest(contents[name]) != told["digests"][name]:',
        'if _digest(contents[name]) == "":',
        "unit/store/test_folder.py::test_every_file_that_was_changed_is_named",
    ),
    Mutant(
        "store/folder.py",
        "a part that is missing is passed over",
        "if found < number:",
        "if found < 0:",
        "unit/store/test_folder.py::test_a_file_that_is_missing_is_noticed",
    ),
    Mutant(
        "log/version.py",
        "the sample has decisions of both halves",
        "shown = np.ones(len(some), dtype=np.bool_) if half is None else half",
        "shown = np.ones(len(some), dtype=np.bool_)",
        "unit/log/test_version.py::test_a_version_in_a_store_is_summed_as_its_rows_in_memory",
    ),
    Mutant(
        "learner/attribution.py",
        "the default counts before the window has passed",
        "absent = ~known & ~waiting",
        "absent = ~known",
        "unit/log/test_version.py::test_windows_and_defaults_count_as_in_memory",
    ),
    Mutant(
        "log/importing.py",
        "decisions that contradict what is there are taken for copies",
        "if not _same(row, old)]",
        "if row.key != old.key]",
        "unit/log/test_importing.py::test_what_contradicts_is_named_or_left_out_on_purpose",
    ),
    Mutant(
        "rng.py",
        "neighbours share numbers where a decision has several",
        "fill(*_key(seed, stream), first * width, numbers)",
        "fill(*_key(seed, stream), first, numbers)",
        "unit/test_rng.py",
    ),
)


def environment(package: Path) -> dict[str, str]:
    """That of tests of a copy of the package, whose machine code is kept inside of it."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return kept | {"PYTHONPATH": str(package.parent)}


def tested(package: Path, tests: set[str]) -> tuple[int | None, str]:
    """The status of pytest, None if it did not end, and what it printed."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            *(f"tests/{name}" for name in sorted(tests)),
        ],
        cwd=ROOT,
        env=environment(package),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        printed = process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    return process.returncode, printed


def plain(folder: Path, mutants: list[Mutant]) -> Path:
    """A copy of the package as it is, which passes all tests that are named, and has its machine code beside it."""
    package = folder / "plain" / "rareswitch"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import rareswitch; print(rareswitch.__file__)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment(package), cwd=folder, capture_output=True, text=True, check=True)
    if Path(found.stdout.strip()).parent != package:
        raise SystemExit(f"tests would not be of the copy {package} but of {found.stdout.strip()}.")
    for k in range(0, len(mutants), 10):  # not all at once, so that none is given up
        status, printed = tested(package, {name for mutant in mutants[k : k + 10] for name in mutant.tests.split()})
        if status != 0:
            raise SystemExit(f"{printed}\nThe tests must pass before it can be seen what fails them.")
    return package


def tried(mutant: Mutant, *, source: Path) -> Row:
    """Make a mutant and see whether its tests fail."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "rareswitch"
        shutil.copytree(source, package)
        mutant.apply(package)
        status, printed = tested(package, set(mutant.tests.split()))
    if status not in (0, 1, 2, None):
        raise SystemExit(f"{mutant.file}, {mutant.what}: pytest ended with status {status}.\n{printed}")
    killers = re.findall(r"^(?:FAILED|ERROR) \S*?(?:tests/)(\S+)", printed, flags=re.MULTILINE)
    verdict = f"killed by {killers[0]}" if killers else "did not end" if status is None else "killed"
    return Row(
        what=f"{mutant.file}: {mutant.what}",
        measured="SURVIVED" if status == 0 else verdict,
        ratio=mutant.equivalent,
        needed="killed" if not mutant.equivalent else "",
        holds=None if mutant.equivalent else status != 0,
    )


def rows(mutants: list[Mutant]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(TOGETHER) as pool:
        source = plain(Path(folder), mutants)
        found: list[bool] = []
        for row in pool.map(partial(tried, source=source), mutants):
            found += [] if row.holds is None else [row.holds]
            yield row
    yield Row(
        what="mutants that were killed",
        measured=f"{sum(found)} of {len(found)}",
        ratio=f"{sum(found) / len(found):.1%}",
        needed=f"{NEEDED:.0%}",
        holds=sum(found) >= NEEDED * len(found),
    )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--only", default="", help="those alone whose file or fault has this text")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.only in f"{mutant.file}: {mutant.what}"]
    return report("Mutants", rows(chosen[:: 5 if options.quick else 1]), options.out)


if __name__ == "__main__":
    sys.exit(main())
