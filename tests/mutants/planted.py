"""Bugs to plant: what is done wrong, a test that finds it, and what it breaks.

A test that passes with its bug planted is a bug of the test. A bug is a change of what a function
does (`tests.mutants.patches`); where it is in the middle of one, and no function's own, a `Text`.
"""

from __future__ import annotations

import os
import uuid
from bisect import bisect_left
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace
from unittest.mock import ANY

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.service_switches import Service
from hoodie_ds.datasource.scan import _STAYS
from hoodie_ds.filters.predicate import ALL
from hoodie_ds.formats.avro.schema import _ARROW_LEAVES, UTC_MICROS
from hoodie_ds.formats.avro.tree import Kind
from hoodie_ds.formats.hfile.reader import _Wanted
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.inspection.damaged_instants import empty_instants
from hoodie_ds.storage.fsspec_storage import FsspecStorage
from hoodie_ds.table.schema_on_read import ALL_AS_NOW
from tests.mutants.behaviours import (
    Unlisted,
    announcing,
    by_name,
    deleting,
    dividing,
    knowing_no_other,
    leaving_out,
    listing_again,
    marking_late,
    not_waiting,
    of_arrow,
    once_more,
    overwriting,
    passing_over,
    telling_later,
    telling_the_cause,
    untold,
)
from tests.mutants.patches import (
    Around,
    Changed,
    Patch,
    Text,
    always,
    instead,
    nothing,
    returns,
    seeing,
    skipped,
    within,
)

COMMIT = "tests/unit/sink/commit/test_commit.py"
METADATA = "tests/integration/test_metadata_table.py"
_VECTORS = "tests/integration/test_vectors.py"
_FILTERS = "tests/integration/test_bloom_filters_kept.py"
_STATISTICS = "tests/integration/test_column_statistics_kept.py"
METADATA_GOLDEN = "tests/golden/test_metadata_tables.py"
METADATA_COMPACTION = "tests/golden/test_metadata_compaction.py"
METADATA_UPKEEP = "tests/golden/test_metadata_upkeep.py"
DELETIONS = "tests/faults/regressions/test_names_and_deletions.py"
STOPPED = "tests/faults/test_stopped.py"
RECOVERY = "tests/unit/transaction/test_recovery.py"
ROLLBACK = "tests/unit/transaction/test_rollback.py"
SPANS = "tests/integration/test_several_batches.py"
TASKS = "tests/integration/test_tasks.py"
LISTS = "tests/faults/regressions/test_strings_and_lists.py"
CONNECTIONS = "tests/faults/regressions/test_connections_and_secrets.py"
USUAL = "tests/integration/test_usual_options.py"
IN_THE_HAND = "tests/faults/regressions/test_library_usability.py"
RETRYING = "tests/unit/storage/test_retrying.py"
OBJECTS = "tests/unit/storage/test_object_storage.py"
OVERTAKEN = "tests/faults/regressions/test_concurrent_writers.py"
KNOWN_WRITERS = "tests/faults/regressions/test_known_writers.py"
IDENTITY = "tests/faults/regressions/test_replay_identity.py"
LATE = "tests/faults/regressions/test_late_drivers_and_tasks.py"
MERGER = "tests/unit/record/merge/test_merger.py"
MERGE_RULE = "tests/faults/regressions/test_merge_rule.py"


@dataclass(frozen=True)
class Mutant:
    """A bug.

    Parameters
    ----------
    name : str
        What is done wrong.
    patch : Patch or Text
        The bug.
    test : str
        A test that has to fail.
    breaks : str
        The promise, or what happens to a user.
    """

    name: str
    patch: Patch | Text
    test: str
    breaks: str

    @property
    def file(self) -> str:
        """The file of the test."""
        return self.test.partition("::")[0]


_LOGGED = "tests/unit/reader/test_logged_rows.py"
_FIRST_QUERY = "test_the_first_query_reads_what_its_filter_rules_out_only_to_know_what_it_hides"
_UPGRADE = "tests/unit/services/upgrade/test_version_change.py"
LOGGED_ROWS = [
    Mutant(
        "NaN is greater than no number",
        Text("op(column, value) | is_nan if", "op(column, value) if"),
        "tests/spark/test_pushed.py::test_rows_that_filters_rule_out_stay_behind",
        "P3: rows that a query with a filter does not find",
    ),
    Mutant(
        "records of log files win unseen",
        instead(
            "surely_wins",
            lambda _wins, _merger, _fields, records, _base: np.ones(records.num_rows, np.bool_),
        ),
        f"{_LOGGED}::test_late_rows_are_compared_once_for_rows_and_once_for_the_bitmap",
        "P14: a late row takes the place of a newer one",
    ),
    Mutant(
        "a log record as high in the first of two ordering fields wins",
        Text(
            "pc.greater(values, greatest) if others", "pc.greater_equal(values, greatest) if others"
        ),
        f"{_LOGGED}::test_two_ordering_fields",
        "P14: a late row takes the place of a newer one",
    ),
    Mutant(
        "rows of a base file that win against the log files are left out",
        Text(
            "if self._surely_win(base).all():",
            "if True:",
        ),
        f"{_LOGGED}::test_late_rows_are_compared_once_for_rows_and_once_for_the_bitmap",
        "P3: committed rows that no query finds",
    ),
    Mutant(
        "late rows of log files are not compared with those of the base file",
        within("KeyedRecords.rows", deque=nothing),
        f"{_LOGGED}::test_late_rows_are_compared_once_for_rows_and_once_for_the_bitmap",
        "P14: a late row takes the place of a newer one",
    ),
]
_LOCATED = "tests/unit/slices/test_located_records.py"
LOCATED_RECORDS = [
    Mutant(
        "positions in another base file count",
        Text(
            "any(p.positions_base != base.name.instant_time for p in logs.places)",
            "any(p.positions_base is None for p in logs.places)",
        ),
        f"{_LOCATED}::test_odd_positions_do_not_count[of another base file]",
        "P3: records replace rows of other keys",
    ),
    Mutant(
        "blocks without usable positions are left out",
        Text(
            ">= base.num_rows:\n            return None", ">= base.num_rows:\n            continue"
        ),
        f"{_LOCATED}::test_odd_positions_do_not_count[damaged]",
        "P3: committed rows that no query finds",
    ),
    Mutant(
        "as many positions as there are records are not needed",
        Text("if sizes.sum() != count:", "if not count:"),
        f"{_LOCATED}::test_odd_positions_do_not_count[fewer than records]",
        "P3: records replace rows of other keys",
    ),
    Mutant(
        "a record replaces the row at its position, however old",
        Text(
            "wins = surely_wins(merger, ordering_fields, records, base)",
            "wins = np.ones(records.num_rows, np.bool_)",
        ),
        f"{_LOCATED}::test_positions_decide_where_all_blocks_have_them",
        "P14: a late row takes the place of a newer one",
    ),
]
_COSTS = "tests/integration/test_lookup_costs.py"
_WRITTEN = "tests/integration/test_written_positions.py"
WRITTEN_POSITIONS = [
    Mutant(
        "positions are counted from the first row of a row group",
        Text("positions[which] = at + found", "positions[which] = found"),
        f"{_WRITTEN}::test_changes_name_positions_from_version_8_on[buckets-9]",
        "P3: records replace rows of other keys",
    ),
    Mutant(
        "of several rows with a key the last one is at its position",
        Text("positions[counts != 1] = -1", "positions[counts == 0] = -1"),
        f"{_WRITTEN}::test_rows_whose_place_is_not_one_row_have_no_positions",
        "P3: a replaced row is read beside the new one",
    ),
    Mutant(
        "records are not in the order of their positions",
        Text("elif (np.diff(positions) < 0).any():", "elif not len(positions):"),
        f"{_WRITTEN}::test_changes_name_positions_from_version_8_on[bloom-9]",
        "P3: records replace rows of other keys",
    ),
    Mutant(
        "positions are those of a base file that a compaction will write",
        Text(
            'located_in = latest.base.name.instant_time if latest.base else ""',
            "located_in = start",
        ),
        f"{_WRITTEN}::test_positions_are_those_of_the_base_file_before_a_compaction[9]",
        "P3: records replace rows of other keys once the compaction is complete",
    ),
    Mutant(
        "of several rows with a key a look-up takes one",
        Text("minlength=len(keys))[asked] == 1", "minlength=len(keys))[asked] >= 1"),
        f"{_WRITTEN}::test_rows_whose_place_is_not_one_row_have_no_positions",
        "P3: a replaced row is read beside the new one",
    ),
    Mutant(
        "a look-up counts the rows of a slice, not of its base file",
        Text("~stays)), live), base\n", "~stays)), live), live\n"),
        f"{_WRITTEN}::test_lookups_name_the_positions_that_they_have_found[BLOOM]",
        "P3: records replace rows of other keys",
    ),
    Mutant(
        "keys that the base file may have are looked up in log files alone",
        Text("if not may.any() and self._context.splits_slices:", "if slice_.logs:"),
        f"{_COSTS}::test_random_slices_have_the_keys_that_they_are_found_to_have[0]",
        "P3: a stored key is inserted again",
    ),
    Mutant(
        "a hook is asked of log files without their base file",
        Text("isinstance(plan.stored_merger, Merger),", "True,"),
        f"{_COSTS}::test_a_hook_is_asked_of_rows_with_their_old_ones",
        "P12: a hook gets a row as if none were stored",
    ),
    Mutant(
        "log blocks of version 6 name positions",
        Text("self.options.writes_positions and self.table.layout > 1", "True"),
        f"{_WRITTEN}::test_changes_name_positions_from_version_8_on[buckets-6]",
        "P9: headers that Hudi does not write in this version",
    ),
]
_BASE_ROWS = "tests/unit/slices/test_base_rows.py"
_KEY_GROUPS = "tests/unit/slices/test_key_groups.py"
BASE_ROWS = [
    Mutant(
        "keys that are not in the sample that a bloom filter lacks are in no base file",
        Text(
            "held = wanted.filter(pa.array(bloom.may_contain(wanted)))", "held = wanted.slice(0, 0)"
        ),
        f"{_KEY_GROUPS}::test_every_key_is_tested",
        "P3: a replaced row is read beside the new one",
    ),
    Mutant(
        "a row group without statistics has no key",
        Text("(known is None or known.values) and", "known is not None and"),
        f"{_KEY_GROUPS}::test_row_groups_that_may_have_keys",
        "P3: a replaced row is read beside the new one",
    ),
    Mutant(
        "the ends of the record keys are those of UTF-8",
        Text("bounds is None or may_differ_in_java(*bounds)", "not bounds"),
        f"{_KEY_GROUPS}::test_keys_whose_orders_differ",
        "P3: a replaced row is read beside the new one",
    ),
    Mutant(
        "rows that a hook merges stay beside the merged ones",
        Text(
            "keep(rows) if may_go else np.ones(rows.num_rows, dtype=np.bool_)",
            "keep(rows) | True",
        ),
        f"{_BASE_ROWS}::test_hooks_get_whole_rows_where_keys_may_be",
        "P3: a replaced row is read beside the new one",
    ),
    Mutant(
        "a hook does not get the last row group of a base file",
        Text(
            "sorted(row_groups_with(base, keys, range(base.num_row_groups)))",
            "sorted(row_groups_with(base, keys, range(base.num_row_groups - 1)))",
        ),
        f"{_BASE_ROWS}::test_hooks_get_whole_rows_where_keys_may_be",
        "P3: committed rows that no query finds",
    ),
    Mutant(
        "the first key of a row group is not among its keys",
        Text("pc.greater_equal(keys, known.low)", "pc.greater(keys, known.low)"),
        f"{_BASE_ROWS}::test_keys_are_read_where_they_may_be",
        "P3: a replaced row is read beside the new one",
    ),
    Mutant(
        "all rows of a row group count where none is compared",
        Text("if may_go or self.only_commits is not None:", "if may_go:"),
        f"{_BASE_ROWS}::test_row_groups_of_which_few_rows_count",
        "P3: a replaced row is read beside the new one",
    ),
]
_BY_FILTER = "tests/integration/test_changes_by_filter.py"
CHANGES_BY_FILTER = [
    Mutant(
        "what a change by a filter has read does not count",
        always("may_hold_matches", returns(False)),
        f"{_BY_FILTER}::test_what_it_would_have_found_is_a_conflict[bloom-MERGE_ON_READ]",
        "P5: rows that the filter matches outlive the delete that came after them",
    ),
    Mutant(
        "a change by a filter conflicts with a clustering of other rows",
        Text("if not commit.is_rewrite:\n            common", "if True:\n            common"),
        f"{_BY_FILTER}::test_a_clustering_of_what_it_has_only_read_is_no_conflict",
        "a batch fails without need",
    ),
    Mutant(
        "a numbered change is taken for any other",
        Text("pickle.dumps(to_arrow(where))", 'b""'),
        f"{_BY_FILTER}::test_a_numbered_delete_is_recognised_by_its_filter",
        "P2: another delete under the same number is dropped silently",
    ),
    Mutant(
        "a numbered update is taken for one to other values",
        always("row_change._named", b""),
        f"{_BY_FILTER}::test_a_numbered_update_is_recognised_by_what_it_does",
        "P2: another update under the same number is dropped silently",
    ),
    Mutant(
        "a numbered update by a filter is recognised by its rows",
        Text(
            "if change is not None:\n        statement",
            "if False:\n        statement",
        ),
        f"{_BY_FILTER}::test_a_numbered_update_is_recognised_by_what_it_does",
        "P2: another update under the same number is dropped silently",
    ),
    Mutant(
        "changes of rows without record keys are logged",
        Text(
            "self._rewrites = not is_logged or plan.index is None", "self._rewrites = not is_logged"
        ),
        f"{_BY_FILTER}"
        "::test_rows_without_record_keys_are_changed_by_themselves[6-MERGE_ON_READ-city]",
        "a table without keys has log files, which this library does not add to",
    ),
    Mutant(
        "log files of rows without record keys are passed over",
        skipped("check_changeable"),
        f"{_BY_FILTER}::test_log_files_of_other_engines_are_merged_first",
        "P1: logged changes of other rows are lost",
    ),
    Mutant(
        "an update to a lower ordering value is left to the merge",
        skipped("_check_order"),
        f"{_BY_FILTER}::test_a_lower_ordering_value_is_refused[MERGE_ON_READ]",
        "an update changes nothing, and says that it did",
    ),
    Mutant(
        "values that Arrow cuts are taken",
        always("_rounds", True),
        f"{_BY_FILTER}::test_values_become_those_of_their_columns",
        "a moment becomes its day silently",
    ),
    Mutant(
        "an update writes rows that it does not change",
        instead("row_change.same_values", lambda _, old, __: np.zeros(len(old), np.bool_)),
        f"{_BY_FILTER}::test_rows_that_have_the_values_already_are_not_written",
        "incremental readers see changes of rows that are as they were",
    ),
    Mutant(
        "rows that a filter has found are looked up again by their keys",
        instead("matched_rows.Places.of", lambda _, _self, _group, rows: rows),
        f"{_BY_FILTER}::test_copies_of_a_key_in_other_files_stay",
        "copies of a key that do not match are deleted",
    ),
    Mutant(
        "a row that a global index has left goes where its fields say",
        Text("if self._stored_in is not None:", "if False:"),
        f"{_BY_FILTER}"
        "::test_a_row_that_a_global_index_has_left_is_changed_where_it_lies[6-COPY_ON_WRITE-bloom]",
        "P1: the file group of another partition is rewritten with it",
    ),
    Mutant(
        "each task on the executors finds the rows of all",
        within("row_changes._change_once", packed=lambda tasks, _: [tuple(tasks)] * 2),
        "tests/spark/test_changes_by_filter.py::"
        "test_rows_and_counts_are_those_of_the_library[bucket, MOR]",
        "rows are counted twice, and log files have them twice",
    ),
]


def _with_one_key(_: object, rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index(RECORD_KEY)
    return rows.set_column(at, RECORD_KEY, pa.repeat("k", rows.num_rows))


_BY_MERGE = "tests/integration/test_merges.py"
SOURCE_MERGES = [
    Mutant(
        "columns of a source may differ in nothing but case",
        skipped("check_case"),
        "tests/faults/regressions/test_row_changes.py"
        "::test_of_two_source_columns_that_differ_in_case_sql_took_the_first",
        "SQL takes the value of the other column",
    ),
    Mutant(
        "one of several source rows for a row is taken",
        Text("if self._of_matched and (self._index.sizes[found] > 1).any():", "if False:"),
        f"{_BY_MERGE}::test_two_source_rows_for_one_row_are_refused",
        "what a row becomes is a matter of chance",
    ),
    Mutant(
        "a merge does not ask whether keys that it inserts are stored",
        skipped("NewKeys.check_not_among"),
        f"{_BY_MERGE}::test_a_stored_key_that_does_not_match_is_not_doubled[bloom-MERGE_ON_READ]",
        "P23: a key is there twice",
    ),
    Mutant(
        "keys with nulls are taken for new ones, as they match nothing",
        Text("return not self._summary.has_nulls and all(", "return all("),
        f"{_BY_MERGE}::test_a_key_of_nulls_is_not_doubled[options1]",
        "P23: a key is there twice, or one row takes the place of another",
    ),
    Mutant(
        "rows on disk stay in memory once they are looked at",
        within("NumberedRows.take", release=nothing),
        "tests/unit/sink/test_numbered_rows.py::"
        "test_of_rows_on_disk_no_more_stay_in_memory_than_are_looked_at",
        "a source larger than memory fills it",
    ),
    Mutant(
        "null equals null",
        instead("numbered_rows._are_whole", lambda _, rows: np.ones(rows.num_rows, np.bool_)),
        f"{_BY_MERGE}::test_values_that_match",
        "rows change that match nothing, by SQL",
    ),
    Mutant(
        "rows with one hash are equal",
        instead("_are_equal", lambda _, rows, __: np.ones(rows.num_rows, np.bool_)),
        "tests/unit/sink/test_numbered_rows.py::test_rows_by_their_values[True]",
        "a row takes the values of another one",
    ),
    Mutant(
        "a row is taken by each clause whose condition is true",
        Text("left = left[~true]", "left = left"),
        f"{_BY_MERGE}::test_the_first_clause_whose_condition_is_true_takes_a_row",
        "a deleted row is updated",
    ),
    Mutant(
        "late rows of a merge's source are counted",
        within("ChangedRows._updated", winning=lambda _, __, new: np.ones(len(new), np.bool_)),
        f"{_BY_MERGE}::test_a_row_with_a_lower_ordering_value_loses",
        "the result names rows that did not change",
    ),
    Mutant(
        "a merge moves rows, or gives them other keys",
        skipped("_check_same_keys"),
        f"{_BY_MERGE}::test_record_keys_and_partitions_do_not_change",
        "P23: a row is in a file group that its key does not lead to",
    ),
    Mutant(
        "a numbered merge is taken for one of another source",
        Text('[b"merge", total.to_text().encode(), *pairs', '[b"merge", *pairs'),
        f"{_BY_MERGE}::test_a_numbered_merge_is_recognised_by_what_it_does",
        "P2: another merge under the same number is dropped silently",
    ),
    Mutant(
        "what a merge has read does not count",
        always("may_hold_matches", returns(False)),
        f"{_BY_MERGE}::test_rows_that_would_have_matched_are_a_conflict[bloom-COPY_ON_WRITE]",
        "P5: a row is inserted though one that matches came first",
    ),
    Mutant(
        "a row of a DataFrame goes to one of the tasks that it may match",
        Text("sf.collect_set(TASK_COLUMN)", "sf.array(sf.min(TASK_COLUMN))"),
        "tests/spark/test_merges.py::test_what_is_refused_changes_nothing",
        "rows of other file groups that match stay as they are",
    ),
    Mutant(
        "tasks of a merge do not ask whether keys that they insert are stored",
        Text("if tasks.compares_keys:", "if False:"),
        "tests/spark/test_merges.py::test_what_is_refused_changes_nothing",
        "P23: a key is there twice",
    ),
    Mutant(
        "new rows without record keys have one together",
        within("KeyedWriter.take", with_automatic_keys=_with_one_key),
        f"{_BY_MERGE}::test_a_merge_without_record_keys[6-COPY_ON_WRITE-city]",
        "P1: rows become one",
    ),
]
_BY_SQL = "tests/integration/test_sql_expressions.py"
EXPRESSIONS = [
    Mutant(
        "an expression looks at several rows",
        Text("_OF_SEVERAL_ROWS & {*_classes(json.loads(said))}", "set()"),
        f"{_BY_SQL}::test_what_is_refused_changes_nothing["
        "fare-sum(fare) OVER ()-OptionError-it has a window]",
        "a new value depends on the rows that happen to be read together",
    ),
    Mutant(
        "a decimal number that SQL made is rounded silently",
        Text("if not pa.types.is_decimal(kind) or", "if True or"),
        f"{_BY_SQL}::test_what_is_refused_changes_nothing["
        "price-price / 7-SchemaError-'price', 0.21]",
        "a number is stored that the expression did not make",
    ),
]
_HFILES = "tests/unit/formats/hfile/test_reader.py"
_WRITTEN_HFILES = "tests/unit/formats/hfile/test_writer.py"
HFILES = [
    Mutant(
        "a prefix ends with the block in which it begins",
        instead("_Prefixes.skip_to", lambda _, self, key: _Wanted.skip_to(self, key)),
        f"{_HFILES}::test_only_needed_blocks_are_read",
        "entries of an HFile that are looked up by a prefix are missed",
    ),
    Mutant(
        "an index names a block of data as often as it likes",
        Text("if block.offset < reached:", "if False:"),
        f"{_HFILES}::test_parts_of_an_index_that_share_blocks_are_refused",
        "a few kilobytes take hours to read",
    ),
    Mutant(
        "a block of an HFile is whatever its bytes inflate to",
        Text("stream.decompress(data, size + 1)", "stream.decompress(data)"),
        f"{_HFILES}::test_a_bomb_is_refused_before_it_bursts",
        "a small file takes all memory",
    ),
    Mutant(
        "an index below the root has whichever keys it has",
        Text("or index[0].key != block.key or", "or"),
        f"{_HFILES}::test_an_index_that_hides_keys_is_refused",
        "keys that are there are not found",
    ),
    Mutant(
        "keys of a block are taken in any order",
        skipped("container.check_order"),
        f"{_HFILES}::test_an_entry_that_lies_is_refused[a key twice]",
        "which entry of a key is found is a matter of chance",
    ),
    Mutant(
        "keys that Java sorts otherwise are looked up where their bytes say",
        always("_Wanted.depend_on_order", False),
        f"{_HFILES}::test_keys_as_java_sorts_them[1-utf-16-be]",
        "records with emoji in their keys are not found, and written twice",
    ),
    Mutant(
        "sizes of entries are believed",
        Text("or not value_at <= value_end < end", ""),
        f"{_HFILES}::test_an_entry_that_lies_is_refused[a value that is too long]",
        "values that are cut off, or another error than that of a damaged file",
    ),
    Mutant(
        "a key that was deleted is still where the record index had it",
        Text("yield change.cast(pa.binary()), np.full(len(change), -1)", "yield from ()"),
        "tests/integration/test_record_index_kept.py"
        "::test_a_table_of_buckets_with_inserts_in_log_files[9]",
        "a row of a deleted key is written to a file group that does not have it",
    ),
    Mutant(
        "a value that looks like an entry is taken for one",
        Text("if not np.array_equal(ends, expected) or", "if"),
        f"{_HFILES}::test_what_is_looked_up_is_found",
        "entries are cut in two, and keys are found that are not there",
    ),
    Mutant(
        "keys are searched in one block that are in the next",
        within(
            "_Wanted.range", bisect_left=lambda keys, key, at: max(at, bisect_left(keys, key) - 1)
        ),
        f"{_HFILES}::test_what_is_looked_up_is_found",
        "keys of the metadata table are not found, and their rows are written twice",
    ),
    Mutant(
        "keys are written in any order",
        skipped("_Writer._check"),
        f"{_WRITTEN_HFILES}::test_keys_that_no_reader_would_find_are_refused[a]",
        "no reader finds some keys of the metadata table",
    ),
    Mutant(
        "a block takes one entry more than it has room for",
        Text("size + added > block_bytes", "size > block_bytes"),
        f"{_WRITTEN_HFILES}::test_a_block_is_full_before_its_content_would_exceed_its_size",
        "HFiles are others than those of Hudi",
    ),
]
_COPIES = "tests/integration/test_copies_of_a_key.py"
_GLOBAL = "tests/integration/test_global_index.py"
_INDEXED = "tests/integration/test_record_index.py"
RECORD_INDEXES = [
    Mutant(
        "a table with a record index of Hudi's is written by an index that knows one partition",
        instead("_keeping_keys_unique", lambda _, index, *__: index),
        f"{_INDEXED}::test_a_golden_table_with_a_record_index",
        "a key in two partitions; Hudi's next write fails for good",
    ),
    Mutant(
        "a record index is forgotten with the metadata table",
        instead(
            "_is_indexed_undefined",
            lambda _, properties: "record_index" in properties.metadata_partitions,
        ),
        f"{_INDEXED}::test_a_key_is_stored_once_where_hudi_indexes_keys[COPY_ON_WRITE-6-undefined-rows5]",
        "the second write brings a key into another partition",
    ),
    Mutant(
        "the definition of a record index is not asked once the metadata table is gone",
        always("_defined", None),
        f"{_INDEXED}::test_a_record_index_that_hudi_dropped_is_still_a_promise",
        "a key in two partitions; Hudi's next write fails for good",
    ),
    Mutant(
        "an index of each partition by itself is taken for one of the table",
        instead("_defined", lambda defined, table: "table" if defined(table) else None),
        f"{_INDEXED}::test_a_key_is_stored_once_where_hudi_indexes_keys[MERGE_ON_READ-9-partition-rows7]",
        "a row takes another partition's row of the same key away",
    ),
    Mutant(
        "inserts of copies are silent where Hudi indexes keys",
        skipped("warn_of_copies"),
        f"{_INDEXED}::test_inserts_say_that_copies_are_in_the_indexs_way[table]",
        "Hudi cannot build its index again, and nobody was told",
    ),
]
_LOOKED_UP = "tests/integration/test_record_lookup.py"
RECORD_LOOKUPS = [
    Mutant(
        "a record index that lacks an instant is asked",
        within("trusted_index", lacking=returns(iter(()))),
        f"{_LOOKED_UP}::test_an_index_that_lacks_a_write_is_not_asked[6]",
        "a key that another writer has inserted is inserted a second time",
    ),
    Mutant(
        "a record index of a later moment is asked",
        within("trusted_index", is_ahead=returns(False)),
        f"{_LOOKED_UP}::test_an_index_of_a_later_moment_is_not_asked",
        "tasks of a batch send rows of a key to different file groups",
    ),
    Mutant(
        "a key whose file group is gone counts as new",
        Text(
            "strange = {*places.groups} - positions.keys()",
            "strange, positions = (), {one: positions.get(one, -1) for one in places.groups}",
        ),
        f"{_LOOKED_UP}::test_a_key_in_a_file_group_that_is_not_there_is_looked_up_in_files",
        "a damaged index has keys stored twice",
    ),
    Mutant(
        "a partition with keys of the batch is not listed",
        Text("sorted({*partitions} - self._listed)", "sorted({*partitions} - self._listed)[:1]"),
        f"{_LOOKED_UP}::test_only_partitions_with_keys_of_the_batch_are_listed",
        "all partitions of the table are listed for each batch",
    ),
    Mutant(
        "slices of a later look-up have the numbers of an earlier one",
        Text("if slices is not self._slices:", "if self._slices is None:"),
        f"{_LOOKED_UP}::test_each_of_several_look_ups_has_the_slices_of_its_partitions",
        "the index is taken for a wrong one, and all data files are asked",
    ),
    Mutant(
        "a key is looked up in the record indexes of all partitions",
        Text("index = index_of(slices[0].group.partition_path)", "pass"),
        f"{_LOOKED_UP}::test_an_index_of_each_partition_finds_keys_there_alone[COPY_ON_WRITE]",
        "the rows of a key in two partitions are looked up in all data files",
    ),
    Mutant(
        "the record index of a new partition does not begin as Hudi's do",
        within("in_index", put_first_log=nothing),
        f"{_LOOKED_UP}::test_an_index_of_each_partition_finds_keys_there_alone[COPY_ON_WRITE]",
        "Hudi finds no file group for the keys of a partition that had none at first",
    ),
    Mutant(
        "a hyphen of a partition path is not escaped in its record index",
        Text('escape(path).replace("-", "%2D").replace("_", "%5F")', "escape(path)"),
        f"{_LOOKED_UP}::test_an_index_of_each_partition_finds_keys_there_alone[COPY_ON_WRITE]",
        "Hudi takes the file group for that of another partition",
    ),
    Mutant(
        "the record index of a partition is made of all rows",
        Text("if index == RECORD_INDEX:", "if index:"),
        f"{_LOOKED_UP}::test_an_index_of_each_partition_is_made_dropped_and_repaired",
        "a table with a key in two partitions gets no record index",
    ),
    Mutant(
        "the switch of the other record index drops that of each partition",
        Text("        of_records = options.partition_index", "        pass"),
        f"{_LOOKED_UP}::test_an_index_of_each_partition_is_made_dropped_and_repaired",
        "an index that took hours is gone by an option that does not mean it",
    ),
    Mutant(
        "a partition path that no name of a file can have is decided about",
        skipped("check_indexed_paths"),
        f"{_LOOKED_UP}::test_the_index_of_a_partition_has_its_path_in_names_of_files[dot]",
        "a decision that no process can carry out: the table takes no write any more",
    ),
    Mutant(
        "of two places of a key the record index has one",
        Text("again[at[again] != at[again - 1]][:1]", "again[:0]"),
        f"{_LOOKED_UP}::test_a_key_in_two_file_groups_has_no_index",
        "rows that no look-up finds any more",
    ),
    Mutant(
        "a new table gets its record index with the second write",
        instead("Coordinator._with_first_metadata", lambda _, self, batch, result: result),
        f"{_LOOKED_UP}::test_a_new_table_has_the_index_from_its_first_write_on[COPY_ON_WRITE-6]",
        "a table that was written once has no index for other engines",
    ),
    Mutant(
        "records of a record index move unless they are told to stay",
        instead("RecordIndex.of", lambda of, *given: replace(of(*given), moves_records=True)),
        f"{_LOOKED_UP}::test_a_record_stays_where_it_is_unless_options_move_it",
        "a row is in another partition than Hudi leaves it in by the same options",
    ),
    Mutant(
        "buckets get a record index",
        within("choose_index", wanted_record_index=returns(None)),
        f"{_LOOKED_UP}::test_an_index_that_cannot_be_is_refused[buckets]",
        "a table whose keys come into two partitions, and that nobody can write any more",
    ),
    Mutant(
        "Hudi is not told of which scope a record index is",
        within("_created", define_index=lambda table, *_: table),
        f"{_LOOKED_UP}::test_a_new_table_has_the_index_from_its_first_write_on[COPY_ON_WRITE-6]",
        "once the index is dropped, writers of ours no longer keep keys unique",
    ),
]
_BESIDE = "tests/integration/test_beside_other_engines.py"
OTHER_ENGINES = [
    Mutant(
        "the metadata table is dropped under a writer that is at work",
        within("_check_none_uses_it", _of_others=returns([])),
        f"{_BESIDE}::test_the_metadata_table_stays_under_a_writer_at_work[commit-COPY_ON_WRITE-6]",
        "it comes back without our commits; the JVM's queries miss rows",
    ),
    Mutant(
        "a writer without a heartbeat counts as dead",
        Text("or instant.time not in ages", "or instant.time in ages"),
        f"{_BESIDE}::test_the_metadata_table_stays_under_a_writer_at_work[commit-COPY_ON_WRITE-6]",
        "single writers on the JVM have none; their queries miss rows",
    ),
    Mutant(
        "a writer whose heart beats before its instant is there is not seen",
        always("_is_known", True),
        f"{_BESIDE}::test_a_heartbeat_tells_whether_a_writer_lives[False]",
        "it comes back without our commits; the JVM's queries miss rows",
    ),
    Mutant(
        "a dead write of ours is in the way of its own recovery",
        within("_by_this_library", is_ours=returns(False), is_claimed=returns(False)),
        f"{_BESIDE}::test_a_write_of_ours_whose_claim_is_gone_is_ours",
        "a table that nobody can write to any more",
    ),
    Mutant(
        "a decided write of an earlier release counts as lost",
        within("lost_instants", is_of_earlier_release=returns(False)),
        "tests/upgrades/test_continued.py::test_a_table_is_continued[decided-9-7d2472d1]",
        "its table cannot be read, and the remedy gives its rows up",
    ),
    Mutant(
        "a clustering of ours counts as another engine's",
        within("begin_plan", mark_begun=nothing),
        f"{_BESIDE}::test_a_dead_clustering_of_ours_blocks_its_file_groups_alone"
        "[COPY_ON_WRITE-6-*.inflight]",
        "writers of other partitions are refused until somebody clusters again",
    ),
    Mutant(
        "a clustering of another engine counts as ours",
        always("is_begun", True),
        f"{_BESIDE}::test_a_clustering_of_others_at_work_is_one_beside_the_lock",
        "two engines complete at the same time, and neither sees the other's conflict",
    ),
    Mutant(
        "a plan of another engine is in the way for ever",
        always("_waits", False),
        f"{_BESIDE}::test_nobody_is_at_work_on_a_plan[6-compaction]",
        "a table that nobody can write to any more",
    ),
    Mutant(
        "the metadata table goes without a word",
        within("switch_metadata_table_off", Log=lambda *_: SimpleNamespace(warning=nothing)),
        f"{_BESIDE}::test_a_warning_names_what_is_dropped[upsert]",
        "an index of hours is gone, and nobody was told",
    ),
    Mutant(
        "a lock of ours alone is taken for one of both",
        skipped("check_lock_is_shared"),
        f"{_BESIDE}::test_a_write_of_others_that_is_pending_is_one_beside_the_lock",
        "two engines complete at the same time, and neither sees the other's conflict",
    ),
    Mutant(
        "a commit of another engine meanwhile passes a lock of ours alone",
        within("check_groups", has_own_lock=returns(False)),
        f"{_BESIDE}::test_a_commit_of_others_meanwhile_is_one_beside_the_lock[6]",
        "two engines complete at the same time, and neither sees the other's conflict",
    ),
]
COPIES = [
    Mutant(
        "a key is in the first of its file groups alone",
        instead(
            "FileLookup.find",
            lambda find, *given, **more: replace(
                RecordLocations.nowhere(len(given[2])), slices=find(*given, **more).first
            ),
        ),
        f"{_COPIES}::test_random_batches_change_every_copy[COPY_ON_WRITE-BLOOM-1]",
        "a deleted key is still read, and an update leaves old rows",
    ),
    Mutant(
        "a row counts once for each file group that it goes to",
        always("copies_among", None),
        f"{_COPIES}::test_a_copy_counts_neither_as_a_row_nor_in_the_digest",
        "P2: a batch that comes again is taken for another one",
    ),
    Mutant(
        "key partitions without a row are handed on",
        Text("for part, batches in chosen if batches]", "for part, batches in chosen]"),
        f"{_GLOBAL}::test_few_keys_of_more_rows_than_a_task_holds[3-GLOBAL_BLOOM]",
        "a batch of few keys can never be written",
    ),
    Mutant(
        "a global index changes the first copy of a key alone",
        Text("for number in range(1, found.most)", "for number in range(1, 1)"),
        f"{_COPIES}::test_to_a_global_index_each_copy_is_a_record[1-GLOBAL_SIMPLE-True]",
        "a deleted key is still read, and an update leaves old rows",
    ),
    Mutant(
        "copies that move to one partition stay apart there",
        Text("moves & ~np.isin(pairs, settled)", "moves"),
        f"{_COPIES}::test_moved_copies_are_one_record_to_every_reader",
        "hudi-rs and Hudi find a deleted row in log files' stead",
    ),
    Mutant(
        "a delete goes to the live copies of its key alone",
        Text("are_deletes(self._plan, rows)[found.keys]", "np.zeros(len(found.keys), np.bool_)"),
        f"{_COPIES}::test_a_late_row_stays_away_whichever_copies_remember_deletes",
        "P14: a late row brings a deleted key back",
    ),
    Mutant(
        "rows for further file groups are held beside the others",
        Text("            if left < 0:\n", "            if left < -1e18:\n"),
        f"{_COPIES}::test_rows_for_many_copies_are_held_within_the_cap[SIMPLE]",
        "memory grows with the copies of a key",
    ),
    Mutant(
        "locations are taken for those of another operation",
        Text("if not self._looks_up and low.max", "if False and low.max"),
        f"{_COPIES}::test_rows_assigned_for_another_operation_are_written_once[insert]",
        "P1: one row is inserted several times",
    ),
]
_BOMBS = "tests/hostile/test_bombs.py"
_TYPES = "tests/faults/regressions/test_types_and_schemas.py"
_TIMES = "tests/faults/regressions/test_times_of_other_writers.py"
_PARTIAL = "tests/integration/test_partial_update_tables.py"
_HOOKS = "tests/unit/record/merge/test_hook_merger.py"
_CALENDAR = "tests/unit/formats/parquet/test_legacy_calendar.py"
TYPES = [
    Mutant(
        "a float is widened bit by bit",
        instead("widen", lambda _, floats: floats.cast(pa.float64())),
        "tests/faults/regressions/test_types_and_schemas.py"
        "::test_a_float_that_became_a_double_got_digits_that_nobody_wrote",
        "0.1 is read, and stored by the next rewrite, as 0.10000000149011612",
    ),
    Mutant(
        "a row that an older update leaves as it was gets its commit",
        Text("kept &= from_old | ~_valid(later)", "kept[:] = False"),
        f"{_PARTIAL}::test_a_row_that_an_older_update_leaves_as_it_was_keeps_its_commit"
        "[COPY_ON_WRITE-9]",
        "incremental queries see a change that is none",
    ),
    Mutant(
        "what an older update fills is forgotten",
        Text("kept &= from_old | ~_valid(later)", "pass"),
        f"{_PARTIAL}::test_a_row_that_an_older_update_leaves_as_it_was_keeps_its_commit"
        "[MERGE_ON_READ-9]",
        "P1: a value is lost",
    ),
    Mutant(
        "what takes an older update's marker away is forgotten",
        Text("kept &= from_old | unknown", "pass"),
        f"{_PARTIAL}::test_rows_are_filled_value_by_value[COPY_ON_WRITE-FILL_UNAVAILABLE-True-?]",
        "P1: a value is lost",
    ),
    Mutant(
        "a log record that a later one leaves as it was gets its commit",
        Text("if kept.any():", "if False:"),
        f"{_HOOKS}::test_a_row_that_the_hook_keeps_has_the_commit_that_wrote_it",
        "incremental queries see a change that is none",
    ),
    Mutant(
        "a stored row that a hook keeps is gone",
        Text("keep[old_at[both][kept]] = True", "pass"),
        f"{_HOOKS}::test_a_row_that_the_hook_keeps_has_the_commit_that_wrote_it",
        "P1: a row is lost",
    ),
    Mutant(
        "a float is widened bit by bit where a user declares a double",
        within(
            "as_declared", conform=lambda rows, declared: rows.select(declared.names).cast(declared)
        ),
        "tests/unit/reader/test_declared_schema.py::test_numbers_widen_as_where_the_table_widens_them",
        "0.1 is read as 0.10000000149011612, as by no other read",
    ),
    Mutant(
        "a decimal does not become a string",
        Text("types.is_date32(source) or types.is_decimal(source)", "types.is_date32(source)"),
        "tests/unit/formats/test_schema_conversion.py::test_decimals_become_the_strings_of_javas_bigdecimal",
        "a table whose column became a string cannot be read",
    ),
    Mutant(
        "Spark skips rows of NaN by statistics",
        Text("return rows.withColumns(changed) if changed and is_clear else rows", "return rows"),
        "tests/spark/test_read.py::test_spark_finds_nan_greater_than_all_numbers",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "rows of log files that have none of the asked columns are not counted",
        Text("if not len(schema):", "if False:"),
        "tests/faults/regressions/test_types_and_schemas.py"
        "::test_only_a_column_that_log_files_lack_is_read_again",
        "P1: rows are lost, or the second query of an added column fails",
    ),
    Mutant(
        "the statistics of floats are widened bit by bit",
        within("statistics._widened", widen=lambda floats: floats.cast(pa.float64())),
        "tests/unit/formats/parquet/test_base_file_reader.py"
        "::test_bounds_of_floats_are_those_of_the_doubles_they_are_read_as",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "dates of the hybrid calendar are taken as they are",
        Text("rows = self._legacy.rebased(rows)", "pass"),
        f"{_TIMES}::test_dates_in_the_hybrid_calendar_were_read_as_others[copy-on-write]",
        "1 January 1500 is read, and stored by the next rewrite, as 10 January",
    ),
    Mutant(
        "statistics of the hybrid calendar are believed",
        Text("if self._rebases(name):", "if False:"),
        f"{_CALENDAR}::test_statistics_of_the_other_calendar_are_not_believed",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "old timestamps of any zone are rebased as those of UTC",
        Text("is_exact = is_date or self.zone in _UTC", "is_exact = True"),
        f"{_CALENDAR}::test_old_timestamps_of_another_zone_are_refused[None]",
        "moments before 1900 are read minutes or hours off",
    ),
    Mutant(
        "INT96 is in the calendar of the other timestamps",
        Text("return column in self.int96", "return self.has_datetimes"),
        f"{_CALENDAR}::test_int96_has_a_calendar_of_its_own",
        "timestamps of Spark 3.0 before 1582 are read days off",
    ),
    Mutant(
        "files do not say which calendar they are in",
        Text("SPARK_VERSION_FOOTER: _PROLEPTIC_SPARK,", ""),
        "tests/unit/formats/parquet/test_base_file.py::test_footers_are_those_of_hudis_avro_writer",
        "Spark 3 refuses to read dates before 1582 of ours",
    ),
    Mutant(
        "microseconds in a file are believed where the table says milliseconds",
        Text("conform(relabelled(rows, wanted), wanted)", "conform(rows, wanted)"),
        f"{_TIMES}::test_milliseconds_that_files_call_microseconds_were_read_as_such"
        "[copy-on-write]",
        "2023 is read, and stored by the next rewrite, as January 1970",
    ),
    Mutant(
        "microseconds in a log block are believed where the table says milliseconds",
        Text("conform(relabelled(rows, sources), sources)", "conform(rows, sources)"),
        f"{_TIMES}::test_milliseconds_that_files_call_microseconds_were_read_as_such[Avro logs]",
        "2023 is read, and stored by the next compaction, as January 1970",
    ),
    Mutant(
        "statistics under a wrong label are believed",
        within("column_bounds", repaired=lambda stored, _: stored),
        f"{_TIMES}::test_milliseconds_that_files_call_microseconds_were_read_as_such"
        "[copy-on-write]",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "a key column may become floating point",
        within(
            "stored_schema",
            check_exact=Around(lambda check, *given: given[-1] == "record key" or check(*given)),
        ),
        f"{_TYPES}::test_a_widened_key_column_changed_every_key",
        "P8: key 1 becomes 1.0, and every upsert an insert",
    ),
    Mutant(
        "names are compared within a batch alone",
        instead("check_case", lambda check, table, batch: check(pa.schema([]), batch)),
        f"{_TYPES}::test_columns_that_differ_in_case_alone_were_stored",
        "P24: Spark and Hive cannot read the table",
    ),
    Mutant(
        "a committed base file is not trusted",
        within(
            "FileSystemView.checked",
            replace=Around(
                lambda replaced, base, **found: replaced(base, **{**found, "trusted": False})
            ),
        ),
        f"{_BOMBS}::test_what_shrinks_a_thousandfold_is_read_and_written",
        "P3: committed rows that cannot be read any more",
    ),
    Mutant(
        "a committed log block is not trusted",
        always("FileSystemView.vouches_for", False),
        f"{_BOMBS}::test_what_shrinks_a_thousandfold_is_read_and_written",
        "P3: committed rows that cannot be read any more",
    ),
    Mutant(
        "whatever a footer claims is believed",
        instead("_check_claims", lambda check, metadata, source, _: check(metadata, source, True)),
        f"{_BOMBS}::test_a_bomb_is_refused_before_it_bursts",
        "P22: a small file that takes all memory",
    ),
    Mutant(
        "text is not looked at before it is stored",
        within("admission._admitted", _is_to_be_checked=returns(False)),
        f"{_TYPES}::test_broken_utf8_was_committed_and_never_read_again",
        "P3: committed, and every read fails from then on",
    ),
    Mutant(
        "text within lists is not looked at",
        instead(
            "admission._check",
            lambda check, array, path: path.endswith(".element") or check(array, path),
        ),
        f"{_TYPES}::test_broken_utf8_was_committed_and_never_read_again",
        "P3: committed, and every read fails from then on",
    ),
    Mutant(
        "a batch of whatever size is taken whole",
        within("in_chunks", cut=lambda part, _: [part]),
        f"{_TYPES}::test_a_batch_with_over_two_gigabytes_of_strings_was_refused",
        "P23: rows are refused that the table can hold",
    ),
    Mutant(
        "milliseconds of a table are taken for microseconds",
        within(
            "arrow_type",
            _ARROW_LEAVES=_ARROW_LEAVES | {(Kind.LONG, "timestamp-millis"): UTC_MICROS},
        ),
        f"{_TYPES}::test_a_key_of_milliseconds_was_taken_for_one_of_microseconds",
        "P8: each row of another engine's table has a second key",
    ),
    Mutant(
        "a batch changes the unit of a table's column",
        within(
            "stored_schema", normalise_schema=Around(lambda normalise, user, _: normalise(user))
        ),
        f"{_TYPES}::test_a_key_of_milliseconds_was_taken_for_one_of_microseconds",
        "P23: a batch of the other unit is refused",
    ),
]
"""Of the types, names and bytes of columns."""

NAMES_AND_DELETIONS = [
    Mutant(
        "a write token holds the numbers of the task alone",
        instead(
            "WriteContext.log_token",
            lambda token, context, version: token(replace(context, batch_attempt=""), version),
        ),
        f"{DELETIONS}::test_a_writer_that_goes_on_deletes_the_log_file_of_the_one_that_took_over",
        "P3: a stopped writer that goes on deletes a committed log file",
    ),
    Mutant(
        "all log files of an attempt have one token",
        instead("WriteContext.log_token", lambda token, context, _: token(context, 0)),
        "tests/integration/test_handles.py::test_no_other_attempt_has_a_name",
        "P3: Hudi on the JVM gives its next log file the name of one that is rolled back",
    ),
    Mutant(
        "a rollback deletes log files whose names others may take",
        always("failed_write._is_safe", True),
        f"{DELETIONS}::test_a_log_file_of_an_earlier_release_stays",
        "P3: a rollback that was stopped deletes a committed log file",
    ),
    Mutant(
        "a rollback deletes another engine's log files",
        Text(
            "whole |= {path for path in listed if is_named_after(path, time)}",
            "whole |= {p for p in listed if _size_if_written_by(storage, p, time)}",
        ),
        f"{DELETIONS}::test_a_log_file_whose_name_another_engine_may_take_stays",
        "P3: a rollback that was stopped deletes a committed log file",
    ),
    Mutant(
        "a commit deletes what another driver of its instant has written",
        within("delete_own_lost", marked_by=returns(ANY)),
        f"{DELETIONS}::test_a_driver_left_behind_deletes_what_its_successor_commits_in_the_same_instant",
        "P3: a stopped driver that goes on deletes committed files",
    ),
    Mutant(
        "a failed write removes whatever has its name",
        within("_unlink_own", os=Changed(os, path=Changed(os.path, samestat=returns(True)))),
        f"{DELETIONS}::test_the_clean_up_of_a_failed_write_takes_the_file_that_has_its_name_by_now",
        "P3: another writer's file is removed",
    ),
    Mutant(
        "a late task does not see that its instant is complete",
        within("instant_checks._ended", TimelineError=nothing),
        f"{STOPPED}::test_further_processes_are_stopped_and_resume"
        "[a driver left behind in an instant of several batches-6]",
        "P16: readers that list folders see two base files of a slice",
    ),
    Mutant(
        "a late commit leaves the files that it merged",
        within("merge_all_staged", no_late_files=lambda *_: nullcontext()),
        f"{STOPPED}::test_further_processes_are_stopped_and_resume[a writer, cow-6]",
        "P16: readers that list folders see rows that were rolled back",
    ),
    Mutant(
        "a read needs log files that were never committed",
        within("LogReader._blocks", was_never_committed=returns(False)),
        f"{DELETIONS}::test_a_read_that_was_planned_before_a_rollback_needs_what_was_never_committed",
        "a read fails for a file of a failed write",
    ),
    Mutant(
        "a read does without a log file that is gone",
        within("LogReader._blocks", was_never_committed=returns(True)),
        f"{DELETIONS}::test_a_read_still_needs_what_is_committed",
        "P3: committed rows are missing, and nobody is told",
    ),
    Mutant(
        "a log file that is torn is not looked at again",
        instead(
            "LogReader._blocks",
            lambda blocks, reader, log: blocks(
                Changed(
                    reader,
                    view=Changed(
                        reader.view, storage=Changed(reader.view.storage, read=returns(ANY))
                    ),
                ),
                log,
            ),
        ),
        f"{DELETIONS}::test_a_log_file_of_an_old_slice_is_read_again_if_it_was_torn",
        "a read fails for a file that is whole by now",
    ),
    Mutant(
        "a read does without log files that were cleaned",
        within("was_never_committed", any=returns(False)),
        f"{DELETIONS}::test_a_read_of_a_slice_that_began_before_the_timeline",
        "P3: committed rows are missing, and nobody is told",
    ),
]
"""Of names that two attempts share, and of what is deleted by name."""

_MARKERS = "tests/faults/regressions/test_marker_folders.py"
_MISSING = "tests/faults/regressions/test_missing_files.py"
_FORMER_LOG = "tests/faults/regressions/test_former_decision_log.py"
TIMES_AND_NAMES = [
    Mutant(
        "our own temporary files lie among the markers",
        Text('    return f"{OURS}/{time}"\n', '    return f"{TEMP}/{time}"\n'),
        f"{_MARKERS}::test_hudi_found_no_markers_among_our_files",
        "P11: the JVM's rollback of a dead write leaves its files",
    ),
    Mutant(
        "a log file of an instant of its own is said to be appended to",
        Text('"APPEND" if context.shares_log_files else "CREATE"', '"APPEND"'),
        f"{_MARKERS}::test_hudi_found_no_markers_among_our_files",
        "every write of the JVM beside a dead write fails",
    ),
    Mutant(
        "temporary files of an earlier release stay among the markers",
        instead("temporary_files._moved", lambda moved, storage, path: path),
        f"{_MARKERS}::test_a_dead_write_of_an_earlier_release",
        "P1: what is decided cannot be completed",
    ),
    Mutant(
        "temporary files stay of instants that another engine has archived",
        within("recovery.sweep", _drop_work=nothing),
        "tests/unit/transaction/test_recovery.py"
        "::test_our_temporary_files_of_an_instant_archived_by_others_are_deleted",
        "what is left of dead writes only grows",
    ),
    Mutant(
        "an instant time is claimed by a put that overwrites",
        instead("claim", overwriting),
        "tests/faults/test_promises.py::test_two_writers_never_share_an_instant",
        "P5: two writers under one instant time",
    ),
    Mutant(
        "whoever finds an instant time claimed joins it",
        instead("claim", lambda claim, *given: claim(*given) or True),
        "tests/faults/test_promises.py::test_two_writers_never_share_an_instant",
        "P5: the files of one batch are committed by another",
    ),
    Mutant(
        "a rollback takes its time without a claim",
        within("rollback._request", claim=returns(True)),
        "tests/integration/test_several_writers.py::test_a_rollback_shares_no_time_with_a_commit",
        "P5: a rollback and a commit at one time",
    ),
    Mutant(
        "the timeline is not looked at after a claim",
        seeing("rollback._request", has_other=returns(False)),
        "tests/faults/test_promises.py::test_a_rollback_takes_no_used_time",
        "P5: two actions at one time",
    ),
    Mutant(
        "a batch opens its instant at a time that another action has",
        within("open_instant._take", _is_anothers=returns(False)),
        "tests/faults/regressions/test_regressions.py::test_two_processes_may_meet",
        "P5: two actions at one time; who rolls one back deletes the files of the other",
    ),
    Mutant(
        "a micro-batch leaves the open instant of those before it",
        instead(
            "open_instant._next",
            lambda after, batch, time: after(
                Changed(batch, timeline=Changed(batch.timeline, joined=None)), time
            ),
        ),
        "tests/faults/regressions/test_late_drivers_and_tasks.py::test_a_batch_joined_an_instant_of_another_writer",
        "P3: rows of earlier micro-batches are not committed",
    ),
    Mutant(
        "instant times come from the clock alone",
        instead("next_time", lambda next_time, now_ms, utc, _: next_time(now_ms, utc, None)),
        "tests/unit/timeline/test_instant_time.py::test_times_increase_whatever_the_clock_does",
        "P5: a clock set back makes a commit older than what it follows",
    ),
    Mutant(
        "times of old tables are compared without their milliseconds",
        instead("padded", lambda _, time: time),
        "tests/unit/timeline/test_loading.py::test_an_old_time_compares_with_milliseconds",
        "rows of an upgraded table vanish",
    ),
    Mutant(
        "the attempt is missing from file names",
        instead(
            "write_context",
            lambda context, batch, time, task, attempt: context(
                batch, time, task, attempt.partition("-")[0]
            ),
        ),
        f"{COMMIT}::test_a_file_of_a_lost_attempt_is_deleted_by_the_commit",
        "P16: a second attempt of a task meets the file of the first",
    ),
    Mutant(
        "tasks of a later run of an open instant take the names of the first",
        instead(
            "write_context",
            lambda context, batch, *given: replace(
                context(batch, *given), batch_attempt=batch.owner
            ),
        ),
        "tests/faults/test_promises.py::test_an_open_instant_is_continued_by_a_new_application",
        "P2: the replay of a batch meets files of the run that died",
    ),
    Mutant(
        "a bucket's file id is drawn",
        instead(
            "bucket_identifier.file_id",
            lambda file_id, bucket, *_: file_id(bucket, uuid.uuid4().int % 10**12),
        ),
        "tests/faults/test_promises.py::test_a_bucket_is_one_file_group_of_any_writer",
        "P7: two file groups for one bucket (Hudi #19907)",
    ),
    Mutant(
        "blocks of log files that are not held are numbered file by file",
        instead(
            "Places.marked",
            lambda marked, places, block: marked(
                places, block._replace(log=replace(block.log, partition_path="", file_name=""))
            ),
        ),
        "tests/golden/test_late_columns.py::test_rows_win_as_in_hudi",
        "P4: a large slice reads as rows of other records",
    ),
    Mutant(
        "a CDC query goes by when commits were completed",
        instead(
            "commit_range.moment",
            lambda moment, instant, by_completion=True: moment(instant),
        ),
        "tests/unit/reader/test_changes.py"
        "::test_a_range_that_begins_at_the_last_change_has_none_twice[9]",
        "a reader of changes who goes on from the last one gets it twice",
    ),
    Mutant(
        "a CDC query passes over a write that is at work",
        within("commit_range.commits_in_range", _without_hollow=lambda _, commits, __: commits),
        "tests/unit/reader/test_changes.py::test_a_write_that_overlaps_is_not_passed_over[9]",
        "a reader of changes who goes on from the last one never sees a commit",
    ),
    Mutant(
        "changes end at a delete after which an older row is back",
        instead("ChangeExecutor._back", returns(())),
        "tests/unit/reader/test_changes.py::test_a_row_that_an_older_one_brings_back_is_a_change",
        "P15: who applies the changes lacks a row of the table",
    ),
    Mutant(
        "a downgrade on an object store leaves log files that a compaction has merged",
        skipped("preparation._check_old_logs"),
        "tests/unit/services/upgrade/test_preparation.py"
        "::test_merged_log_files_on_an_object_store_refuse_a_downgrade[MERGE_ON_READ]",
        "Hudi on the JVM merges them once more, and loses rows that came after a delete",
    ),
    Mutant(
        "large log files are read into memory",
        within("FileSystemView.read_log", HELD_BYTES=1 << 60),
        "tests/golden/test_late_columns.py::test_no_large_log_file_is_read_whole",
        "a slice that is larger than memory cannot be read",
    ),
    Mutant(
        "what was looked at of a large file stays in memory",
        within("memory_map.pieces", release=nothing),
        "tests/unit/storage/test_memory_map.py"
        "::test_pieces_are_all_of_the_bytes_and_stay_in_memory_one_at_a_time",
        "a slice that is larger than memory cannot be read",
    ),
    Mutant(
        "the number of buckets that a writer is told is believed",
        skipped("BucketRouter._check_some"),
        "tests/golden/test_read_golden.py"
        "::test_another_number_of_buckets_than_that_of_its_writers_is_refused",
        "P4: rows are stored twice, in buckets of two numbers",
    ),
    Mutant(
        "a group that replaces another takes over its id",
        within(
            "BucketRouter._target",
            unused_file_id=Around(lambda unused, bucket, _: unused(bucket, set())),
        ),
        "tests/integration/test_operations.py::test_an_overwrite_of_partitions_leaves_the_others",
        "new rows are hidden with the group that they replace (Hudi #19793)",
    ),
    Mutant(
        "new file ids are made without the partition",
        instead(
            "new_group",
            lambda new, context, path, number: replace(
                new(context, "", number), partition_path=path
            ),
        ),
        "tests/faults/test_promises.py::test_file_ids_differ_between_partitions",
        "one id in two partitions (Hudi #19517)",
    ),
]

_FOLLOWERS = "tests/faults/test_followers.py"
FOLLOWERS = [
    Mutant(
        "a recovery completes an instant, and no follower is told",
        within("complete_from_manifest", put_completed=untold),
        f"{_FOLLOWERS}::test_a_write_is_known_wherever_its_process_ends[upsert, crashes]",
        "a metadata table lacks the files of a commit, which its readers then leave out",
    ),
    Mutant(
        "a rollback is completed, and no follower is told",
        within("completion.complete", put_completed=untold),
        f"{_FOLLOWERS}::test_a_service_is_known_wherever_its_process_ends[rollback, cow-6]",
        "a metadata table names files that were rolled back",
    ),
    Mutant(
        "a savepoint is made, and no follower is told",
        within("_apply_savepoint", put_completed=untold),
        f"{_FOLLOWERS}::test_a_service_is_known_wherever_its_process_ends[savepoint, cow-9]",
        "a metadata table is behind the timeline",
    ),
    Mutant(
        "a follower is told once an instant is visible",
        instead("put_completed", telling_later),
        f"{_FOLLOWERS}::test_a_write_is_known_wherever_its_process_ends[rollback, crashes]",
        "a metadata table lacks the files of a commit, which its readers then leave out",
    ),
    Mutant(
        "a compaction completes under another name than its followers are told",
        within("Instant.completed", COMPLETES_AS={}),
        f"{_FOLLOWERS}::test_a_service_is_known_wherever_its_process_ends[compaction-9]",
        "a follower waits for an instant that never comes",
    ),
]

_KEPT = "tests/integration/test_metadata_table_kept.py"
_KEPT_BY_ALL = "tests/faults/test_metadata_table.py"
_KEPT_FILES = "tests/integration/test_kept_files.py"
_INDEX_KEPT = "tests/integration/test_record_index_kept.py"
_PARTITIONS = "tests/integration/test_metadata_partitions.py"
_VALUES_KEPT = "tests/golden/test_secondary_indexes.py"
_VALUES_FOUND = "tests/integration/test_secondary_lookup.py"
_MOVING = "tests/spark/test_global_index.py"
_TO_TASKS = "tests/integration/test_file_groups_of_tasks.py"
SENT_TO_TASKS = [
    Mutant(
        "a stored key goes to the task that its hash says",
        always("KeyLocations.tasks", None),
        f"{_TO_TASKS}::test_the_driver_reads_no_row[true]",
        "no row of a table with a record index is written",
    ),
    Mutant(
        "a record index is not asked before the shuffle",
        Text("LookupIndex) and index.assigns_rows", "LookupIndex) and not index.is_global"),
        f"{_MOVING}::test_a_stream_moves_keys_without_the_driver[9]",
        "the driver merges all updates of a copy-on-write table",
    ),
    Mutant(
        "a task writes to the file group of another one",
        Text("if (tasks_of(self.slices, self._num_tasks)[stored] != self._task).any():", "if 0:"),
        f"{_TO_TASKS}::test_a_copy_in_a_file_group_of_another_task_is_refused",
        "two tasks rewrite a base file, and the rows of one are lost",
    ),
    Mutant(
        "a task fills the small files of all tasks",
        Text("if owns.num_tasks:", "if 0:"),
        f"{_TO_TASKS}::test_random_batches_give_the_model[COPY_ON_WRITE-6-True-True-True]",
        "two tasks rewrite a base file, and the rows of one are lost",
    ),
    Mutant(
        "rows of a key that was looked up in two ways are taken",
        instead("digest_by_index", lambda _, digest: digest),
        f"{_TO_TASKS}::test_rows_that_were_looked_up_in_different_ways_are_refused[RECORD_LEVEL_INDEX]",
        "a deleted key comes back in two file groups",
    ),
    Mutant(
        "rows that came by the hash of their keys count as sent to their file groups",
        Text("if (self._stored if self._is_global else self._router).asks_index:", "if 1:"),
        f"{_TO_TASKS}::test_rows_are_distributed_by_keys_where_the_index_is_not_believed[COPY_ON_WRITE]",
        "no row is written where another writer was faster",
    ),
    Mutant(
        "rows that an older view has sent count as sent to their file groups",
        Text("if digest not in self._digests:", "if 0:"),
        f"{_TO_TASKS}::test_rows_that_an_older_view_has_sent_are_looked_up_anew[COPY_ON_WRITE]",
        "no row is written where another writer was faster",
    ),
    Mutant(
        "rows that were sent by other keys are in the tasks of theirs",
        Text("(self._index is None or self._is_located or self._is_by_key)", "True"),
        f"{_TO_TASKS}::test_rows_sent_for_another_table_are_the_commits[other keys-BLOOM]",
        "each of two tasks stores a new key",
    ),
    Mutant(
        "rows are sent to another number of tasks",
        Text("repr((num_tasks, *fields))", "repr(fields)"),
        f"{_TO_TASKS}::test_rows_that_were_sent_to_two_and_to_three_tasks_are_refused[BLOOM]",
        "each of two tasks stores a new key",
    ),
    Mutant(
        "a key that has moved stays where it was, too",
        always("GlobalLocations._tombstones", ()),
        f"{_TO_TASKS}::test_the_driver_reads_no_row[true]",
        "a key in two partitions",
    ),
    Mutant(
        "a key whose file group is gone goes where its hash says",
        Text("elsewhere = ~is_there[places.numbers]", "elsewhere = np.zeros(len(keys), np.bool_)"),
        f"{_TO_TASKS}::test_a_key_in_a_file_group_that_is_not_there_goes_where_files_have_it",
        "no row is written until the index is dropped",
    ),
    Mutant(
        "a base file takes the place of a slice to which another task adds a log file",
        Text(" or (is_rewritten and status.group in logged)", ""),
        f"{_TO_TASKS}::test_a_base_file_beside_a_log_file_of_another_task_is_refused[6]",
        "no reader finds the rows of the log file",
    ),
]
_OF_TASKS = "tests/integration/test_keys_of_tasks.py"
_TOO_LONG = "tests/faults/regressions/test_rows_too_long_to_index.py"
METADATA_TABLES = [
    Mutant(
        "a write leaves an expression index that it does not keep",
        Text("    off += dropped_indexes(table.properties, options)\n", ""),
        "tests/golden/test_secondary_indexes.py"
        "::test_a_write_drops_an_expression_index_alone_and_says_so",
        "Hudi's queries by the index miss rows",
    ),
    Mutant(
        "a write that is completed beside an expression index is not recorded",
        Text(
            "if is_kept(table.properties, others) else ()", "if is_kept(table.properties) else ()"
        ),
        f"{_KEPT}::test_a_dead_write_is_recorded_before_an_expression_index_goes",
        "a metadata table that is kept lacks files",
    ),
    Mutant(
        "entries of an attempt that has lost are joined",
        Text(
            """names = sorted(named)
        paths = [keys_path(time, name) for name in names]
        with ThreadPoolExecutor(_READ_AT_ONCE, "hoodie-keys") as pool:
            ends = [*pool.map(partial(_end, storage), paths, map(named.__getitem__, names))]
        for body in ends:
            if body is None or not set().union(*body.files.values()) <= added.keys():""",
            """paths = [one.path for one in storage.list(keys_path(time, "")[:-1])]
        puts = [
            (end, xxhash.xxh64_hexdigest(whole[end:]))
            for whole in map(storage.read, paths)
            for end in [whole.rfind(b'{"files"')]
        ]
        for body in map(partial(_end, storage), paths, puts):
            if body is None:""",
        ),
        f"{_OF_TASKS}::test_the_delta_commit_has_the_blocks_of_the_attempt_that_counts",
        "Hudi finds keys in file groups that are not there",
    ),
    Mutant(
        "entries count of data files that the commit lacks",
        Text(
            "body is None or not set().union(*body.files.values()) <= added.keys()",
            "body is None",
        ),
        f"{_OF_TASKS}::test_entries_of_a_file_that_the_commit_has_not_do_not_count",
        "keys of files that the commit has merged with staged rows, deleted ones among them",
    ),
    Mutant(
        "a file of entries is taken that others have put in place of the task's",
        Text("xxhash.xxh64_hexdigest(end) != checksum", "False"),
        f"{_OF_TASKS}::test_keys_of_which_entries_are_lost_are_found_in_the_files[another]",
        "a commit that is decided and can never be completed",
    ),
    Mutant(
        "damaged entries of a task are joined",
        Text("found.hexdigest() != self.checksum", "False"),
        f"{_OF_TASKS}::test_keys_of_which_entries_are_lost_are_found_in_the_files[damaged]",
        "a metadata table that nobody can read",
    ),
    Mutant(
        "a commit fails whose entries go while they are joined",
        within("MetadataFollower.before", LostKeysError=KeyError),
        f"{_OF_TASKS}::test_a_process_goes_on_whose_commit_another_one_completes",
        "rows are written again that are in the table",
    ),
    Mutant(
        "rows are taken of which no index can have an entry",
        within("task_writer._admitted", check_indexed=nothing),
        f"{_TOO_LONG}::test_a_key_that_was_too_long_for_the_record_index",
        "no later write can complete the commit, nor do without",
    ),
    Mutant(
        "entries count that tasks have made for fewer file groups",
        Text("if body.groups.items() <= groups.items():", "if body.groups:"),
        f"{_OF_TASKS}::test_keys_of_which_entries_are_lost_are_found_in_the_files[index]",
        "keys that no look-up finds",
    ),
    Mutant(
        "a key is deleted that a task has placed anew",
        Text("lost.difference(joined.placed(index, lost))", "lost"),
        f"{_OF_TASKS}::test_a_key_that_moves_is_not_deleted[several]",
        "whether a row is found depends on the order of blocks of one time",
    ),
    Mutant(
        "the driver finds keys, too, of which tasks have made entries",
        Text("known = joined.files.get(RECORD_INDEX, ())", "known = ()"),
        f"{_OF_TASKS}::test_what_the_driver_reads_does_not_grow_with_rows",
        "a commit takes longer with each row",
    ),
    Mutant(
        "a task makes entries of a file that has lost keys",
        Text("if len(gone):", "if 0:"),
        f"{_OF_TASKS}::test_a_task_that_adds_keys_and_takes_others_away",
        "keys of deleted rows stay in the index",
    ),
    Mutant(
        "a commit takes keys away that rows have which a task has moved",
        Text("(found, without(lost, placed))", "(found, lost)"),
        f"{_OF_TASKS}::test_keys_that_a_merged_file_loses_to_a_task_are_not_deleted[False]",
        "whether a row is found depends on the order of blocks of one time",
    ),
    Mutant(
        "a commit takes values away that rows have which a task has moved",
        Text("(others and plan.secondary)", "False"),
        f"{_OF_TASKS}::test_keys_that_a_merged_file_loses_to_a_task_are_not_deleted[True]",
        "whether a row is found depends on the order of blocks of one time",
    ),
    Mutant(
        "a key is gone although an older row of it stays",
        Text(" & ~self._losing", ""),
        f"{MERGER}::test_a_key_is_gone_once_no_row_of_it_is_left[9-gone1]",
        "an upsert does not find a row that is there",
    ),
    Mutant(
        "a commit that is tried again forgets its entries of the record index",
        Text("return statuses, key_files_of(commit.extra)", "return statuses, {}"),
        f"{_OF_TASKS}::test_a_commit_that_is_tried_again_has_the_keys_of_the_first_try",
        "the driver reads the keys of all merged files",
    ),
    Mutant(
        "a task finds keys in file groups that other tasks write to",
        Text("if owns.groups and not plan.operation.replaces:", "if True:"),
        f"{_OF_TASKS}::test_keys_of_file_groups_that_tasks_share_are_found_by_the_driver",
        "a key that another task has deleted stays in the index",
    ),
    Mutant(
        "a task takes no delete for too old that it writes into a shared file group",
        Text("if any(len(values.filter(gone).drop_null())", "if any(0"),
        f"{_OF_TASKS}::test_a_delete_in_a_shared_file_group_may_be_too_old[EVENT_TIME_ORDERING]",
        "an upsert does not find a row that is there",
    ),
    Mutant(
        "a task takes all rows in log files of shared file groups for updates",
        Text("if keys and not len(without(keys[0], stored.get(group, NO_KEYS))):", "if keys:"),
        f"{_OF_TASKS}::test_a_key_that_a_shared_file_group_gets_is_found_by_the_driver",
        "an upsert does not find a row that is there",
    ),
    Mutant(
        "a task deletes a key that another places anew",
        Text("if not (may_move and len(lost)):", "if True:"),
        f"{_OF_TASKS}::test_a_key_that_moves_is_not_deleted[several]",
        "whether a row is found depends on the order of blocks of one time",
    ),
    Mutant(
        "a task deletes a key that it has placed anew",
        Text("without(pa.concat_arrays(gone), keys)", "pa.concat_arrays(gone)"),
        f"{_OF_TASKS}::test_a_key_that_moves_is_not_deleted[one]",
        "whether a row is found depends on the order of blocks of one time",
    ),
    Mutant(
        "a value is deleted that a task has placed anew",
        Text(".difference(joined.placed(index.partition, gone, index.hashed))", ""),
        f"{_OF_TASKS}::test_a_value_that_moves_is_not_deleted[several]",
        "whether a query finds a row depends on the order of blocks of one time",
    ),
    Mutant(
        "the driver finds values, too, of which tasks have made entries",
        Text("known = joined.files.get(index.partition, ())", "known = ()"),
        f"{_OF_TASKS}::test_values_are_where_tasks_leave_them[MERGE_ON_READ]",
        "a commit takes longer with each row",
    ),
    Mutant(
        "a task makes entries of keys that the index has already",
        Text("else one._replace(keys=without(one.keys, there))", "else one"),
        f"{_OF_TASKS}::test_keys_in_log_files_are_where_tasks_leave_them",
        "the index grows with each update",
    ),
    Mutant(
        "a task deletes keys that the index does not have",
        Text("yield one._replace(keys=among(one.keys, there))", "yield one"),
        f"{_OF_TASKS}::test_keys_in_log_files_are_where_tasks_leave_them",
        "the place of a key goes with a delete elsewhere",
    ),
    Mutant(
        "tasks make entries of a file that the next micro-batch of the instant rewrites",
        Text("if not (is_alone and has_keys and", "if not (has_keys and"),
        f"{_OF_TASKS}::test_keys_of_several_micro_batches_of_an_instant_are_found_in_the_files",
        "keys that no look-up finds",
    ),
    Mutant(
        "a key that an insert has twice has two entries",
        Text("return keys.filter(pa.array(first)), of_key[first]", "return keys, of_key"),
        f"{_OF_TASKS}::test_a_task_with_many_keys_puts_them_part_by_part",
        "a bulk of inserts fails",
    ),
    Mutant(
        "each look-up reads all log files of the index again",
        within("logged_blocks", _written=nothing),
        f"{_KEPT_FILES}::test_small_files_are_read_once[9-True]",
        "a batch takes longer with each batch before it",
    ),
    Mutant(
        "a file of the name of one that was read is believed to be that",
        within("logged_blocks", _kept_log=Around(by_name)),
        f"{_KEPT_FILES}::test_a_file_of_another_commit_of_the_same_time_is_read",
        "rows go to file groups that do not have their keys",
    ),
    Mutant(
        "an older place of a key is the newest",
        Text("parts += block.find(keys, made)", "parts = [*block.find(keys, made), *parts]"),
        f"{_INDEX_KEPT}::test_keys_are_where_writes_and_services_leave_them[COPY_ON_WRITE-9]",
        "rows go to file groups that have their keys no more",
    ),
    Mutant(
        "of a key that is looked up twice one is found",
        Text("is_first[1:] = as_numpy(pc.not_equal(wanted[1:], wanted[:-1]))", "pass"),
        f"{_INDEX_KEPT}::test_a_commit_looks_up_no_key_that_a_base_file_adds",
        "a key of which a batch has two rows is inserted a second time",
    ),
    Mutant(
        "all keys of a log file have entries",
        Text("logged.update(found.to_pylist() if added[group].log else ())", "pass"),
        f"{_INDEX_KEPT}::test_deletes_of_unknown_keys_leave_the_index_alone",
        "the index grows with each update",
    ),
    Mutant(
        "a commit looks all new keys up",
        Text("logged.update(found.to_pylist() if added[group].log else ())", "logged |= {*places}"),
        f"{_INDEX_KEPT}::test_a_commit_looks_up_no_key_that_a_base_file_adds",
        "a commit takes longer with each log file of the index",
    ),
    Mutant(
        "a rollback leaves the record indexes of partitions alone",
        within("record_changes", _touched_by=returns([])),
        f"{_INDEX_KEPT}::test_keys_are_back_after_a_rollback_and_a_restore"
        "[MERGE_ON_READ-9 of partitions]",
        "Hudi updates rows of file groups that are gone",
    ),
    Mutant(
        "records of a secondary index are hashed by their whole keys in every version",
        Text("value = _VALUE.match(key) if self.is_hashed_by_value else None", "value = None"),
        f"{_VALUES_KEPT}"
        "::test_keys_are_in_the_file_groups_in_which_hudi_has_them[v9_mor_files_ri_si]",
        "Hudi looks values up in other file groups, and misses rows",
    ),
    Mutant(
        "a new partition gets one file group of its record index",
        Text("return int(least) if least.isdecimal() else 1", "return 1"),
        "tests/integration/test_record_lookup.py"
        "::test_each_partition_gets_as_many_file_groups_as_the_index_was_made_with",
        "each commit of a large partition rewrites one large file",
    ),
    Mutant(
        "a change of the version loses the metadata table",
        within("change_version", make_again=nothing),
        f"{_PARTITIONS}::test_a_change_of_the_layout_makes_it_again[COPY_ON_WRITE]",
        "indexes that took hours are gone, and queries list folders",
    ),
    Mutant(
        "a metadata table of version 9 begins where one of version 6 has ended",
        Text("layout == V1.version and begins.isdecimal()", "begins.isdecimal()"),
        f"{_PARTITIONS}::test_a_change_of_the_layout_makes_it_again[COPY_ON_WRITE]",
        "Hudi finds delta commits of times that it does not give them in version 9",
    ),
    Mutant(
        "a secondary index of a merge-on-read table is believed",
        Text('if not is_right or record_index(table) != "table":', "if not table:"),
        f"{_VALUES_FOUND}::test_an_index_that_may_be_wrong_is_not_believed",
        "of several indexes Hudi has updated only the first, and rows are missing in queries",
    ),
    Mutant(
        "values are looked up in a secondary index by the hash of all of its keys' parts",
        Text("index.is_hashed_by_value, _MOST", "True, _MOST"),
        f"{_VALUES_FOUND}::test_only_files_with_the_values_are_opened_of_a_table_of_hudi",
        "rows are not found in tables of version 8, whose whole keys are hashed",
    ),
    Mutant(
        "a part of the entries that start with a value is taken for all of them",
        Text("return None if next(left, None) is None else found", "return found"),
        f"{_VALUES_FOUND}::test_a_value_of_many_rows_is_not_looked_up",
        "queries of a frequent value miss rows",
    ),
    Mutant(
        "indexes of the present are asked for a past moment",
        Text(
            "        if pruner is None or self.is_past:\n            return None\n",
            "        if pruner is None:\n            return None\n"
            "        metadata = replace(metadata, data=self.table.load_timeline())\n",
        ),
        f"{_VALUES_FOUND}::test_a_past_moment_is_read_without_the_index",
        "time travel misses rows that have moved or changed since",
    ),
    Mutant(
        "record keys of a secondary index stay escaped",
        Text(r'_ESCAPED.sub(r"\1", _VALUE.sub("", key, count=1))', '_VALUE.sub("", key, count=1)'),
        f"{_VALUES_FOUND}::test_only_files_with_the_values_are_opened_of_a_table_of_hudi",
        "rows whose keys have a $ are not found",
    ),
    Mutant(
        "values in a secondary index are not escaped",
        Text(r'return pc.replace_substring_regex(strings, _SPECIAL, r"\\\0")', "return strings"),
        f"{_VALUES_KEPT}::test_values_are_the_strings_of_java[values0-keys0]",
        "Hudi takes a part of a value for the whole",
    ),
    Mutant(
        "a secondary index keeps the values that rows had before",
        Text("return dict.fromkeys(lost - there) |", "return"),
        f"{_VALUES_KEPT}::test_writes_and_a_rollback_keep_the_values[v9_mor_files_ri_si]",
        "it grows with every write, and look-ups find keys in vain",
    ),
    Mutant(
        "a row that moves takes its value out of a secondary index",
        Text(
            "dict.fromkeys(lost - there) | dict.fromkeys(there, THERE)",
            "dict.fromkeys(there, THERE) | dict.fromkeys(lost)",
        ),
        f"{_VALUES_KEPT}::test_a_row_that_moves_keeps_its_value",
        "Hudi does not find the row by its value",
    ),
    Mutant(
        "the columns of a secondary index may change their type",
        skipped("check_indexed_columns"),
        f"{_VALUES_KEPT}::test_a_column_keeps_the_strings_of_its_values",
        "values of older rows are other strings than those that are looked up",
    ),
    Mutant(
        "an indexed column may become another one of its name",
        Text(
            "check_indexed_columns(table, partitions, plan.schema, columns.same)",
            "check_indexed_columns(table, partitions, plan.schema, columns.columns)",
        ),
        f"{_VALUES_KEPT}::test_a_column_keeps_its_name",
        "a secondary index has values of the column that was dropped",
    ),
    Mutant(
        "an index of a column whose strings depend on the release of Java is kept",
        Text("if schema is None or kind_of_strings(schema, index.column) is not None:", "if True:"),
        f"{_VALUES_KEPT}::test_the_values_of_some_types_are_not_kept",
        "Hudi does not find rows by their values",
    ),
    Mutant(
        "a secondary index that is dropped stays defined",
        skipped("undefine_indexes"),
        f"{_VALUES_KEPT}::test_an_index_that_is_dropped_is_not_made_again",
        "Hudi's next write makes it again",
    ),
    Mutant(
        "a check passes over indexes of rows",
        always("index_divergences", ()),
        f"{_VALUES_KEPT}::test_a_check_names_what_an_index_lacks_and_has_too_much",
        "nobody learns that Hudi does not find rows",
    ),
    Mutant(
        "a record index keeps keys of replaced file groups",
        Text("for group in () if changes.is_rewrite else replaced & groups:", "for group in ():"),
        f"{_INDEX_KEPT}::test_keys_are_where_writes_and_services_leave_them[COPY_ON_WRITE-9]",
        "Hudi updates keys in file groups that are gone",
    ),
    Mutant(
        "a record index keeps deleted keys",
        Text("if deleted := sorted(entries.keys() - there.keys()):", "if deleted := []:"),
        f"{_INDEX_KEPT}::test_keys_are_where_writes_and_services_leave_them[MERGE_ON_READ-6]",
        "Hudi updates keys in file groups that are gone",
    ),
    Mutant(
        "a record index loses the keys of deletes that are too late",
        Text(
            "is_known = is_plain and (slice_.base is None or not reader.ordering_fields)",
            "is_known = is_plain",
        ),
        f"{_INDEX_KEPT}::test_a_table_of_buckets_with_inserts_in_log_files[9]",
        "Hudi inserts keys again that have a row",
    ),
    Mutant(
        "a rollback leaves a record index as the write had it",
        Text("stored = earlier.by_key(", "stored = later.by_key("),
        f"{_INDEX_KEPT}::test_keys_are_back_after_a_rollback_and_a_restore[COPY_ON_WRITE-6]",
        "Hudi updates keys in file groups that are gone",
    ),
    Mutant(
        "a rollback looks for a write above the compaction that has included it",
        always("undone_records._is_newest", True),
        f"{_INDEX_KEPT}::test_keys_are_back_where_a_compaction_has_included_the_write[6]",
        "Hudi updates keys in file groups that are gone",
    ),
    Mutant(
        "a rollback of a write from before the record index changes nothing there",
        always("trust.may_be_listed", False),
        f"{_INDEX_KEPT}"
        "::test_what_is_undone_that_was_there_before_the_index_is_compared_with_all_rows[9]",
        "Hudi updates keys in file groups that are gone",
    ),
    Mutant(
        "secondary indexes beside a record index of each partition are written",
        within("not_kept", record_index=returns("table")),
        f"{_INDEX_KEPT}::test_an_index_of_each_partition_is_refused_beside_a_secondary_one",
        "a value has one of the rows of a key in two partitions",
    ),
    Mutant(
        "a record index gets deletes of keys that it does not have",
        Text(
            "for key in gone - places.keys() if known.get(key) in groups}",
            "for key in gone - places.keys()}",
        ),
        f"{_INDEX_KEPT}::test_deletes_of_unknown_keys_leave_the_index_alone",
        "it grows with every delete, and the place of a key goes with a delete elsewhere",
    ),
    Mutant(
        "a write's own log files do not count where a record index is made of them",
        Text(
            "return time == self.time or super().is_committed(time)",
            "return super().is_committed(time)",
        ),
        f"{_INDEX_KEPT}::test_a_table_of_buckets_with_inserts_in_log_files[9]",
        "Hudi inserts keys again that have a row",
    ),
    Mutant(
        "a metadata table is told nothing of what is deleted",
        instead(
            "file_records.file_records",
            lambda records, instant, changes: records(
                instant, replace(changes, deleted=frozenset(), removed=frozenset())
            ),
        ),
        f"{_KEPT}::test_it_lists_what_writes_and_services_leave[COPY_ON_WRITE-9]",
        "engines fail on files that are gone",
    ),
    Mutant(
        "a log file that a restore marks first and then deletes is listed",
        Text(
            "{**changes.marked, **dict.fromkeys(changes.deleted | changes.removed)}",
            "{**dict.fromkeys(changes.deleted | changes.removed), **changes.marked}",
        ),
        f"{_KEPT}::test_it_lists_what_writes_and_services_leave[MERGE_ON_READ-6]",
        "engines fail on files that are gone",
    ),
    Mutant(
        "files of change data are not listed",
        Text(
            "{path: stat.file_size_bytes, **dict(stat.change_files)}",
            "{path: stat.file_size_bytes}",
        ),
        f"{_KEPT}::test_files_of_change_data_are_listed[9]",
        "queries of changes miss rows",
    ),
    Mutant(
        "a delta commit that is put again gets a log file of its own",
        Text("name = own or LogFileName(", "name = LogFileName("),
        f"{_KEPT}::test_a_log_file_that_was_put_is_not_put_again",
        "a slice has blocks that no commit names",
    ),
    Mutant(
        "a process that was stopped puts a delta commit that was archived",
        always("delta_commit._is_archived", False),
        f"{_KEPT}::test_a_process_that_was_stopped_puts_nothing_into_a_later_slice",
        "files are listed again that a clean has deleted since",
    ),
    Mutant(
        "a metadata table with partitions that nobody keeps is written to",
        always("is_kept_partition", True),
        f"{_KEPT}::test_partitions_that_cannot_be_kept_are_refused[files,strange-strange]",
        "an index is out of date, and rows are lost by it without an error",
    ),
    Mutant(
        "a metadata table that is being built is written to",
        Text(
            "all(map(is_kept_partition, partitions)) and is_built",
            "all(map(is_kept_partition, partitions))",
        ),
        f"{_KEPT}::test_one_that_is_being_built_is_refused",
        "what is written meanwhile is not in it",
    ),
    Mutant(
        "a restore that is resumed forgets the commands of the first attempt",
        instead("rollback.with_commands", lambda _, table, target, found: found),
        f"{_KEPT_BY_ALL}::test_a_service_is_listed_wherever_its_process_ends[restore, mor-6-3]",
        "once the instants are archived, engines read what was taken back",
    ),
    Mutant(
        "the property of a metadata table that is made comes first",
        instead("creation._created", announcing),
        f"{_KEPT_BY_ALL}::test_one_is_made_wherever_its_process_ends[9-5]",
        "readers take what is not there yet for all files",
    ),
    Mutant(
        "a metadata table is made of what a dead process left",
        Text("    storage.delete(name)\n", ""),
        f"{_PARTITIONS}::test_a_partition_is_made_anew_of_what_a_dead_process_left[9]",
        "files are not listed",
    ),
    Mutant(
        "a metadata table is made upon the timeline of one that was dropped",
        within("create_partitions", METADATA_TABLE=".hoodie/none"),
        f"{_PARTITIONS}::test_one_is_made_after_a_drop_that_was_killed[9]",
        "it names log files that are gone, so folders are listed for good",
    ),
    Mutant(
        "a partition is dropped while a compaction names its files",
        always("finish_pending", True),
        f"{_PARTITIONS}::test_a_compaction_that_was_killed_does_not_miss_what_is_dropped[9]",
        "the metadata table is never compacted again",
    ),
    Mutant(
        "a partition is made of a table that is being written to",
        always("other_engines.at_work", None),
        f"{_PARTITIONS}::test_nothing_is_made_while_a_write_is_pending",
        "what is written meanwhile is not in it",
    ),
    Mutant(
        "a process that was stopped names a partition that lacks what others wrote",
        always("_check_as_before", None),
        f"{_PARTITIONS}::test_a_partition_without_what_others_wrote_meanwhile_is_left_out",
        "rows are lost by its statistics without an error",
    ),
    Mutant(
        "statistics of partitions stay without those of files",
        instead("with_dependents", lambda _, names, there: [n for n in there if n in names]),
        f"{_PARTITIONS}::test_one_is_dropped_without_the_others",
        "Hudi does not keep them, and rows are lost by them",
    ),
    Mutant(
        "a check of statistics does not compare their ends",
        always("recorded_entries._holds", True),
        f"{_PARTITIONS}::test_what_is_wrong_is_named_and_made_anew[9-partition_stats]",
        "nobody learns that readers leave rows out",
    ),
    Mutant(
        "a check passes over bloom filters of other files",
        always("filter_divergences", ()),
        f"{_PARTITIONS}::test_what_is_wrong_is_named_and_made_anew[9-bloom_filters]",
        "nobody learns that Hudi does not find keys",
    ),
    Mutant(
        "a repair keeps what is wrong",
        instead("other_engines.drop_metadata_partitions", lambda _, table, *given: table),
        f"{_PARTITIONS}::test_what_is_wrong_is_named_and_made_anew[9-files]",
        "the next reader leaves rows out again",
    ),
    Mutant(
        "an earlier version gets statistics with types that it does not know",
        always("column_index.has_types", False),
        f"{_PARTITIONS}::test_a_change_of_the_version_keeps_it_where_the_timeline_stays",
        "Hudi's release of that version reads them wrong",
    ),
    Mutant(
        "a process compacts by the number that it has read before others changed it",
        Text("current = open_table(table.storage)", "current = table"),
        f"{_PARTITIONS}::test_a_process_compacts_by_the_number_of_now",
        "one process plans a compaction where another one writes on, and a delta commit is lost",
    ),
    Mutant(
        "a partition that no switch names is dropped",
        Text("if on is False and options.drops", "if not on and options.drops"),
        f"{_PARTITIONS}::test_a_write_makes_and_drops_what_is_switched",
        "an index that took hours is gone",
    ),
    Mutant(
        "a partition is dropped where none may be",
        Text("if on is False and options.drops", "if on is False"),
        f"{_PARTITIONS}::test_a_write_makes_and_drops_what_is_switched",
        "one of several writers drops what another one needs",
    ),
    Mutant(
        "statistics of a partition are those of its latest files",
        instead(
            "creation._committed",
            lambda _, view: {
                file.path: file.size
                for slice_ in view.slices_among(view.data_files())
                for file in slice_.files
            },
        ),
        f"{_PARTITIONS}::test_older_files_count_in_the_statistics_of_a_partition",
        "a rollback shows rows that readers leave out",
    ),
    Mutant(
        "all keys of a table are in memory for an index of them",
        instead("creation._places", lambda function, *given: [*function(*given)]),
        "tests/unit/metadata_table/test_keys_of_rows.py"
        "::test_an_index_is_made_file_group_by_file_group",
        "the driver of a large table has too little memory",
    ),
    Mutant(
        "rows are compared with another file group of an index",
        within("differing_records", enumerate=lambda found: enumerate(found, 1)),
        "tests/unit/metadata_table/test_keys_of_rows.py"
        "::test_an_index_is_compared_file_group_by_file_group",
        "a restore deletes all records of an index",
    ),
    Mutant(
        "a file group of the metadata table is that of another hash",
        within("key_codes", abs=lambda codes: codes & 0xFFFFFFFF),
        "tests/unit/metadata_table/test_record_keys.py"
        "::test_java_hashes_units_of_utf_16_and_takes_numbers_without_their_sign[zzzzzz-685785664]",
        "Hudi does not find the record",
    ),
]

COMMITS = [
    Mutant(
        "the completed file is put over what is there",
        instead("put_decisively", overwriting),
        "tests/faults/test_promises.py::test_a_completed_file_never_changes",
        "P6: a commit changes after readers have seen it",
    ),
    Mutant(
        "a commit names none of its files",
        within("commit_record", CommitMetadata=Around(lambda made, _, *given: made((), *given))),
        f"{COMMIT}::test_nothing_is_visible_before_the_commit",
        "P3: committed rows are not there",
    ),
    Mutant(
        "an error of the completing put is passed over",
        instead("put_decisively", passing_over),
        f"{COMMIT}::test_a_decided_commit_is_completed_by_the_next_batch",
        "P1: Spark moves past a batch that is not there",
    ),
    Mutant(
        "a commit without an answer counts as failed",
        instead("put_decisively", telling_the_cause),
        "tests/unit/storage/test_decisive_put.py::test_a_put_that_may_still_arrive_has_an_unknown_outcome",
        "P4: unknown is taken for failed",
    ),
    Mutant(
        "a put that may still arrive counts as failed",
        within("put_decisively", UnavailableError=()),
        "tests/unit/storage/test_decisive_put.py::test_a_put_that_may_still_arrive_has_an_unknown_outcome",
        "P4: unknown is taken for failed",
    ),
    Mutant(
        "a commit of somebody else's under the same time counts as ours",
        instead(
            "put_decisively",
            lambda put, storage, *given: put(
                Changed(storage, read=lambda path: storage.read(path) and ANY), *given
            ),
        ),
        "tests/faults/test_promises.py::test_a_completed_file_never_changes",
        "P3: success is told for rows that are not there",
    ),
    Mutant(
        "tasks that did not report are passed over",
        instead(
            "Coordinator.commit",
            lambda commit, self, messages: commit(self, [m for m in messages if m]),
        ),
        f"{COMMIT}::test_a_task_that_did_not_report_stops_the_commit",
        "P1: a part of a batch is committed",
    ),
    Mutant(
        "two attempts of a task are both committed",
        within("_all_files", _check_no_group_twice=nothing),
        f"{TASKS}::test_two_base_files_of_one_group_are_refused",
        "P2: rows come twice, or a slice has two base files",
    ),
    Mutant(
        "files of lost attempts stay",
        skipped("delete_own_lost"),
        f"{DELETIONS}::test_a_file_of_a_lost_attempt_is_seen_by_readers_that_list_folders",
        "P16: readers that list folders see rows twice",
    ),
    Mutant(
        "conflicts are looked for on the timeline of the batch's start",
        within(
            "commit._checked_record",
            check_groups=Around(
                lambda check, batch, time, _, *given: check(batch, time, batch.timeline, *given)
            ),
        ),
        f"{COMMIT}::test_a_commit_meanwhile_to_the_same_group_is_a_conflict",
        "P3: an update in between is lost",
    ),
    Mutant(
        "what came into a replaced partition meanwhile is no conflict",
        instead("check_groups", lambda check, *given: check(*given[:-1], Unlisted(given[-1]))),
        "tests/faults/test_promises.py::test_a_write_to_a_replaced_partition_is_a_conflict",
        "P3: an overwrite takes rows away that nobody told it of, or leaves them",
    ),
    Mutant(
        "a writer that is named need not number its writes",
        within("write_options.of_call", check_numbered=nothing),
        "tests/integration/test_numbered_writes.py"
        "::test_a_named_writer_has_to_number_its_writes[<lambda>0]",
        "P2: a scheduler repeats a write, and its rows are there twice",
    ),
    Mutant(
        "a batch commits although its instant was rolled back",
        skipped("check_not_undone"),
        f"{COMMIT}::test_a_commit_after_a_rollback_is_refused",
        "P1: a commit names files that are gone",
    ),
    Mutant(
        "a writer whose batch others have completed and archived hears of a rollback",
        within("_check_done", _is_archived=returns(False)),
        "tests/faults/test_late_version_changes.py"
        "::test_a_writer_says_whether_others_have_completed_and_archived_its_batch[6]",
        "P2: the user writes rows again that are in the table",
    ),
    Mutant(
        "abort deletes the files of the batch",
        instead("Coordinator.abort", deleting),
        f"{COMMIT}::test_an_abort_after_success_deletes_nothing",
        "P3, P4: a commit whose answer was lost loses its rows",
    ),
    Mutant(
        "a failed flush is not waited for",
        instead("Flusher.wait_for_one", not_waiting),
        "tests/integration/test_memory.py"
        "::test_a_buffer_is_held_until_its_flush_succeeded_and_a_failure_fails_the_task",
        "P1: a commit before its data",
    ),
    Mutant(
        "the marker comes after its file",
        instead("open_data_file", marking_late),
        "tests/faults/test_promises.py::test_every_file_has_a_marker",
        "P11: a file that no rollback finds",
    ),
]

WIDENED = "tests/integration/test_widened_columns.py"
REPLAYS = [
    Mutant(
        "the replay check looks at the newest commit alone",
        Text("        if wanted is None or instant.time in wanted:", "        if wanted is None:"),
        f"{COMMIT}::test_a_batch_that_an_earlier_instant_committed_later_is_known",
        "P2: a batch comes twice if another commit lies between",
    ),
    Mutant(
        "the replay check looks at the batch's number without its query",
        instead(
            "ReplayGuard.highest",
            lambda highest, guard, batch: max(
                (highest(guard, replace(batch, query_id=name)) for name in guard.committed),
                default=-1,
            ),
        ),
        "tests/unit/sink/test_replay_guard.py::test_batches_count_as_committed_up_to_the_highest_of_the_query",
        "P2: batches of a second query are dropped",
    ),
    Mutant(
        "a commit carries its own query alone",
        instead(
            "commit_record",
            lambda record, batch, messages, statuses, guard, *given: record(
                batch, messages, statuses, type(guard)() if messages[0].batch_id else guard, *given
            ),
        ),
        f"{COMMIT}::test_every_commit_carries_all_queries",
        "P2: another writer's commit, or archiving, makes the table forget a batch",
    ),
    Mutant(
        "batch numbers are compared as text",
        instead(
            "ReplayGuard.holds",
            lambda _, guard, batch: str(batch.batch_id) <= guard.committed.get(batch.query_id, ""),
        ),
        "tests/unit/sink/test_replay_guard.py::test_batches_count_as_committed_up_to_the_highest_of_the_query",
        "P2: batch 10 is dropped after batch 9",
    ),
    Mutant(
        "a committed batch is written again",
        Text("    if batch_id is not None and batch.guard.holds(batch_id):\n", "    if False:\n"),
        f"{COMMIT}::test_a_committed_batch_is_only_digested",
        "P2: a replayed batch leaves an instant behind",
    ),
    Mutant(
        "a batch that was committed meanwhile is committed again",
        within(
            "_check_done",
            recall=Around(lambda recall, *given: Changed(recall(*given), holds=returns(False))),
        ),
        "tests/unit/sink/commit/test_commit.py::test_a_batch_begun_twice_commits_once",
        "P2: a driver left behind and its successor both commit",
    ),
    Mutant(
        "an instant of several batches forgets the earlier ones",
        within("commit._checked_record", joined=lambda before, record, path: record),
        "tests/integration/test_several_batches.py::test_rows_appear_with_the_last_batch",
        "P3: rows of earlier micro-batches are gone",
    ),
    Mutant(
        "a number whose digest is not kept is taken for done",
        instead(
            "check_replay",
            lambda check, messages, guard: (
                messages[0].batch_id.batch_id in guard.digests(messages[0].batch_id)
                and check(messages, guard)
            ),
        ),
        f"{IDENTITY}::test_a_new_checkpoint_under_an_old_name_was_passed_over",
        "P2: rows of a batch that was never written are lost in silence",
    ),
    Mutant(
        "a number that was passed over may be accepted as done",
        instead("ReplayGuard.leaves_out", returns(False)),
        "tests/integration/test_numbered_writes.py::test_a_number_that_was_passed_over_is_refused[False-options1]",
        "P2: the remedy of the error loses rows that were never written",
    ),
    Mutant(
        "numbers that another engine wrote count as passed over",
        Text("        if self.highest(batch) not in before:", "        if False:"),
        "tests/unit/sink/test_replay_guard.py::test_a_number_that_another_engine_may_have_written_is_not_left_out",
        "P2: the rows of a committed batch are written again under another number",
    ),
    Mutant(
        "numbers between the digests of two commits count as passed over",
        instead("replay_guard._united", lambda _, one, other: {**one, **other}),
        "tests/unit/sink/test_replay_guard.py::test_numbers_between_the_digests_of_two_commits_are_not_left_out[True]",
        "P2: the rows of a committed batch are written again under another number",
    ),
    Mutant(
        "the digest of keyed rows covers their keys alone",
        within("InputDigest.of_keyed", row_sums=returns(0)),
        f"{IDENTITY}::test_other_values_under_the_same_keys_were_passed_over",
        "P2: corrected values under a number that is taken are lost in silence",
    ),
    Mutant(
        "values count without the key of their row",
        instead(
            "row_sums",
            lambda sums, rows, keys: (
                (sums(rows, np.ones_like(keys)) + int(keys.sum(dtype=np.uint64))) % 2**64
            ),
        ),
        "tests/unit/sink/replay/test_replay.py::test_swapped_values_are_other_rows",
        "P2: other rows are taken for those that were committed",
    ),
    Mutant(
        "the digest is of rows in the table's types",
        instead(
            "digest_of",
            lambda digest, plan, batch_id, _, converted: digest(
                plan, batch_id, converted, converted
            ),
        ),
        f"{WIDENED}::test_it_is_known_in_a_wider_table[COPY_ON_WRITE-buckets-6]",
        "P2: a stream fails for ever once another writer has widened a column",
    ),
    Mutant(
        "a delete takes all columns that the table has",
        instead("needed_to_delete", lambda _, columns, properties: columns),
        f"{WIDENED}::test_a_delete_takes_no_notice_of_columns_that_it_does_not_need[wider-buckets]",
        "P23: deletes are refused for columns that they do not need",
    ),
    Mutant(
        "the digest of a delete is of all columns that the table has",
        instead("WritePlan.taken_schema", lambda _, plan: plan.schema),
        f"{WIDENED}::test_a_delete_is_known_after_columns_were_added[COPY_ON_WRITE]",
        "P2: a stream of deletes fails for ever once another writer has added a column",
    ),
    Mutant(
        "digests of earlier releases are compared with those of this one alone",
        within("check_replay", total_digest=Around(lambda total, messages, **_: total(messages))),
        f"{WIDENED}::test_a_batch_of_an_earlier_release_is_known[buckets-wide]",
        "P2: a stream fails for ever after the library is upgraded",
    ),
    Mutant(
        "a commit leaves a writer out that is not put aside",
        within("commit._checked_record", put_aside=nothing),
        f"{IDENTITY}::test_an_inactive_writer_resumes_and_becomes_inactive_again",
        "P2: the table forgets a writer, and its batch comes twice",
    ),
    Mutant(
        "a writer that was put aside is not looked for by the tasks",
        within("with_known_batches", recall=lambda storage, timeline, guard, batch_id: guard),
        f"{IDENTITY}::test_commits_grew_with_every_writer_that_ever_wrote",
        "P2: a batch comes twice once its writer is put aside",
    ),
    Mutant(
        "commits carry all writers that ever wrote",
        instead("ReplayGuard.parted", lambda _, guard, *__: (guard, [])),
        f"{IDENTITY}::test_commits_grew_with_every_writer_that_ever_wrote",
        "P29: commits grow without end",
    ),
    Mutant(
        "a stream may begin anywhere",
        skipped("check_none_missed"),
        f"{IDENTITY}::test_a_stream_lost_the_rows_of_a_table_that_was_deleted",
        "P2: a stream goes on in an empty table, and earlier rows are lost in silence",
    ),
    Mutant(
        "batches that are taken back are not written down",
        within("carried_without", record_rolled_back=nothing),
        f"{IDENTITY}::test_a_stream_continued_without_its_rolled_back_batches",
        "P2: a stream goes on without rows that a rollback took, in silence",
    ),
    Mutant(
        "archived commits are not asked what a table that goes back knows of writers",
        always("guard_commits._archived", ()),
        f"{KNOWN_WRITERS}::test_archived_batches_were_forgotten_where_only_a_rewrite_was_left",
        "P2: archived batches are written again after a restore",
    ),
    Mutant(
        "what was put aside counts though its commit was taken back",
        within("past_writers._find", counts=returns(True)),
        f"{KNOWN_WRITERS}::test_batches_of_an_inactive_writer_were_lost_after_their_rollback",
        "P1: batches that were taken back count as committed, and are lost",
    ),
    Mutant(
        "what is put aside deletes what the table may go back to",
        always("past_writers._is_archived", True),
        f"{KNOWN_WRITERS}::test_batches_of_an_inactive_writer_were_lost_after_their_rollback",
        "P2: a writer is forgotten after a restore, and its batches come twice",
    ),
    Mutant(
        "what was put aside is never deleted",
        always("past_writers._is_archived", False),
        f"{KNOWN_WRITERS}::test_the_number_of_a_writers_files_follows_the_timeline",
        "P29: files grow with every batch of many writers",
    ),
    Mutant(
        "a write that was taken back counts again once it lies before the timeline",
        within("status_of", is_undone=returns(False)),
        f"{KNOWN_WRITERS}::test_rolled_back_entries_of_inactive_writers_stay_void_when_archived",
        "P1: batches that were taken back count as committed, and are lost",
    ),
    Mutant(
        "what releases before put aside outlives its batch",
        within("carried_without", date_entries=nothing),
        f"{KNOWN_WRITERS}::test_entries_of_an_earlier_release_are_rolled_back_with_their_batches",
        "P1: batches that were taken back count as committed, and are lost",
    ),
    Mutant(
        "a commit vouches for those of later times",
        Text('    if next((i.time for i in timeline.commits_backwards()), "") > ', "    if '' > "),
        "tests/integration/test_several_writers.py::test_a_commit_does_not_vouch_for_those_of_later_times",
        "P1: a batch that was taken back counts as committed, and is lost",
    ),
    Mutant(
        "what the log carries counts though another engine took the writes back",
        Text("    if at and not counts(", "    if False and not counts("),
        f"{KNOWN_WRITERS}::test_archived_batches_were_forgotten_where_only_a_rewrite_was_left",
        "P1: batches that were taken back count as committed, and are lost",
    ),
    Mutant(
        "what was pending beside a commit is forgotten once others have archived it",
        Text("return is_recent and not any(timeline.starts_after(", "return is_recent or any(("),
        "tests/unit/transaction/test_guard_commits.py::test_writes_pending_with_our_newest_may_be_archived",
        "P2: a batch comes twice if another engine archives it",
    ),
    Mutant(
        "an old write with a savepoint tells of those that were archived after it",
        always("covers_all", True),
        "tests/unit/transaction/test_guard_commits.py::test_a_write_kept_by_a_savepoint_does_not_replace_the_archive",
        "P2: archived batches are written again",
    ),
    Mutant(
        "first batches without rows leave no mark",
        within("Coordinator._commit_nothing_written", mark=nothing),
        f"{IDENTITY}::test_a_stream_whose_first_batches_had_no_rows_continues",
        "a stream that began with nothing is stopped at its first rows",
    ),
    Mutant(
        "what an earlier release stored under the name alone is not looked at",
        instead(
            "ReplayGuard.name_of",
            lambda name_of, guard, batch: name_of(guard, replace(batch, formerly="")),
        ),
        f"{IDENTITY}::test_batches_stored_under_the_name_alone_are_recognised_with_the_checkpoint",
        "P2: the last batch before an upgrade comes twice",
    ),
]

RECOVERIES = [
    Mutant(
        "a rollback trusts the timeline that it was given",
        seeing("roll_back", is_pending=returns(True)),
        f"{ROLLBACK}::test_an_instant_that_is_gone_is_left_alone",
        "P3: a completed instant is rolled back",
    ),
    Mutant(
        "a rollback does not look again once it is on the timeline",
        Text(
            "    if table.load_timeline().commit_at(instant.time) is not None:\n",
            "    if False:\n",
        ),
        f"{ROLLBACK}::test_an_instant_that_completes_meanwhile_is_left_alone",
        "P3: a completed instant is rolled back",
    ),
    Mutant(
        "the rolled back instant leaves the timeline before its files are gone",
        Text(
            "    put_step(storage, rollback, State.INFLIGHT)\n",
            "    put_step(storage, rollback, State.INFLIGHT)\n"
            "    storage.delete(instant_path(instant.at(State.INFLIGHT)))\n"
            "    storage.delete(instant_path(instant.at(State.REQUESTED)))\n"
            "    delete_temporary(storage, instant.time)\n",
        ),
        f"{RECOVERY}::test_recovery_may_be_killed_at_any_operation",
        "P11: files of a failed write stay",
    ),
    Mutant(
        "another engine's instant is completed",
        within("_finish_or_undo", is_ours=returns(True), _is_of_several=returns(False)),
        "tests/unit/transaction/test_recovery.py::test_another_engines_instant_is_never_committed",
        "P1: what another engine had not finished becomes visible",
    ),
    Mutant(
        "a damaged manifest is committed",
        within("newest_manifest", CommitMetadata=SimpleNamespace(from_bytes=nothing)),
        f"{RECOVERY}::test_a_damaged_manifest_is_rolled_back",
        "P6: a completed file that cannot be read",
    ),
    Mutant(
        "a whole manifest is rolled back",
        within(
            "_finish_or_undo", resolve_instant=Around(lambda resolve, *given, **_: resolve(*given))
        ),
        "tests/unit/transaction/test_recovery.py::test_a_whole_manifest_is_committed",
        "P3: micro-batches that Spark has moved past are lost",
    ),
    Mutant(
        "the sweep deletes what a commit names",
        within(
            "sweep",
            FileSystemView=Around(lambda view, *given: Changed(view(*given), names=returns(False))),
        ),
        "tests/unit/transaction/test_recovery.py::test_a_file_that_its_commit_does_not_name_is_deleted",
        "P3: committed rows are deleted",
    ),
    Mutant(
        "the sweep takes a pending instant for one that is gone",
        instead(
            "sweep",
            lambda sweep, table, timeline, found: sweep(
                table, Changed(timeline, at=returns(())), found
            ),
        ),
        "tests/unit/transaction/test_recovery.py::test_files_of_a_pending_instant_stay",
        "P1: files of a write that goes on are deleted",
    ),
]

_GIVEN = "tests/unit/filters/test_given.py"
_SCANNER = "tests/unit/reader/test_scanner.py"
_POLARS = "tests/unit/api/test_polars_scan.py"
_FILTERED = "tests/integration/test_filtered_reads.py::test_filters_find_what_is_among_all_rows"
_COSTS = "tests/integration/test_read_costs.py"

READS = [
    Mutant(
        "the statistics of a base file rule out what its log files change",
        Text(
            "        if not is_merged:\n            partition",
            "        if True:\n            partition",
        ),
        f"{_SCANNER}::test_rows_that_a_hook_merges_are_found_whatever_the_base_file_holds",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "a key is looked for in all file groups",
        always("Pruner.keeps", True),
        f"{_SCANNER}::test_a_key_of_a_bucket_table_opens_one_file_group",
        "a look-up opens the whole table",
    ),
    Mutant(
        "a number of a filter is rounded to the column's type",
        Text("return cast if same else None", "return cast"),
        "tests/unit/filters/test_arrow.py::test_what_is_not_understood_rules_nothing_out",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "alternatives in a filter are taken for conditions that all hold",
        Text(
            "given = tuple(given) if isinstance(given, list) else given",
            "given = predicate_of(given, schema) if isinstance(given, list) else given\n"
            "    if isinstance(given, Predicate):\n"
            "        return given",
        ),
        f"{_GIVEN}::test_what_is_no_filter_is_refused",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "a condition that cannot be evaluated holds for all rows",
        Text("if part.given is None or not inexact:", "if False:"),
        f"{_GIVEN}::test_what_is_no_filter_is_refused",
        "rows are found that do not match a filter",
    ),
    Mutant(
        "the conditions of a filter after the first are lost",
        Text("for part in given))", "for part in [*given][:1]))"),
        f"{_GIVEN}::test_a_filter_finds_the_same_rows_in_each_language",
        "rows are found that do not match a filter",
    ),
    Mutant(
        "Spark leaves out what only Arrow can evaluate of a filter",
        always("_has_opaque", False),
        "tests/spark/test_read.py::test_what_filters_rule_out_is_not_opened",
        "rows are found that do not match a filter",
    ),
    Mutant(
        "the column of a filter that Spark evaluates alone is not read",
        Text("frozenset(() if given is None else given[:1])", "frozenset()"),
        "tests/unit/filters/test_tuples.py"
        "::test_a_value_that_is_another_in_the_column_is_refused_or_left_to_the_caller",
        "P3: a query that fails for want of a column",
    ),
    Mutant(
        "NOT IN a list with a null is true",
        Text("if typed.null_count and negated:", "if False:"),
        "tests/unit/filters/test_tuples.py::test_rows_that_conditions_keep",
        "rows are found that no SQL finds",
    ),
    Mutant(
        "NOT IN of Arrow is not true of null",
        Text("if negated or values.null_count else found", "if values.null_count else found"),
        "tests/unit/filters/test_arrow.py::test_a_null_is_in_no_list_of_arrow",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "statistics are believed to know of NaN",
        Text("elif pa.types.is_floating(field.type):", "elif field is None:"),
        "tests/unit/filters/test_arrow.py::test_a_column_may_have_nan_whatever_its_bounds_are",
        "P1: rows that match a filter are not found",
    ),
    Mutant(
        "expressions of another form rule nothing out",
        always("satisfiable", True),
        "tests/unit/filters/test_arrow.py::test_arrow_rules_out_what_cannot_be_taken_apart",
        "a new pyarrow makes every filtered read a read of the whole table",
    ),
    Mutant(
        "the filter in front of the state forgets deleted keys",
        instead(
            "FrontFilter.ask",
            lambda ask, asked, held, hashes: ask(
                asked,
                {
                    place: Changed(keys, dead=SimpleNamespace(hashes=np.array([])))
                    for place, keys in held.items()
                },
                hashes,
            ),
        ),
        "tests/unit/index/test_front_filter.py::test_stored_and_deleted_keys_pass_and_few_new_ones",
        "P8: what comes after a delete begins another file group",
    ),
    Mutant(
        "the filter in front of the state is asked about slices that it was not told of",
        Text("if source not in self._sources}", "if not self._sources}"),
        "tests/unit/index/test_front_filter.py::test_a_full_filter_is_rebuilt_from_stored_keys",
        "P8: a stored key is inserted again",
    ),
    Mutant(
        "a reader believes the folder instead of the commit",
        always("FileSystemView.names", True),
        f"{COMMIT}::test_a_file_of_a_late_task_is_invisible",
        "P16: late files are read",
    ),
    Mutant(
        "letter case of bucket rules is left to the engine",
        Text(
            "        elif ignoring_case and other in ascii_letters:\n"
            '            yield f"[{other}{other.swapcase()}]"\n',
            "        elif ignoring_case:\n"
            '            yield f"(?i:{other})" if other.isalpha() else other\n',
        ),
        "tests/unit/config/test_bucket_rules.py"
        "::test_a_partition_has_the_number_of_buckets_that_hudi_gives_it",
        "P21: a key's rows in two buckets",
    ),
    Mutant(
        "of a timeline that was loaded before only what is new is taken in",
        instead(
            "loading._changed",
            lambda changed, known, names: changed(Changed(known, names=known.names & names), names),
        ),
        "tests/unit/timeline/test_loading.py"
        "::test_changes_are_loaded_as_if_all_names_were_parsed_again",
        "P14: rows of what was rolled back are read",
    ),
    Mutant(
        "instants of the second that changed are taken over from before",
        within("loading._changed", min=max),
        "tests/unit/timeline/test_loading.py"
        "::test_changes_are_loaded_as_if_all_names_were_parsed_again",
        "P14: a commit is not seen",
    ),
    Mutant(
        "the commit begins a merge-on-read group as it begins a copy-on-write one",
        within("merge_staged", TableType=SimpleNamespace(MERGE_ON_READ=None)),
        "tests/faults/regressions/test_first_write.py"
        "::test_a_delete_of_a_new_group_stays_one_for_older_rows",
        "P11: a deleted row is back by an older one",
    ),
    Mutant(
        "instants are settled that are younger than a pending one",
        within("_with_more_settled", min=max),
        "tests/unit/timeline/test_settled_instants.py"
        "::test_nothing_is_settled_that_is_younger_than_a_pending_instant",
        "P13: an instant that completes late is not seen",
    ),
    Mutant(
        "log files of before an upgrade are taken for nobody's",
        Text("min(versions) >= _FIRST_WITH_OWN_LOGS", "max(versions) >= _FIRST_WITH_OWN_LOGS"),
        "tests/unit/services/upgrade/test_preparation.py"
        "::test_savepoints_of_log_files_can_be_read_in_the_later_version[9]",
        "a cleanup takes what savepoints keep",
    ),
    Mutant(
        "a process that wakes goes on with a change that others have ended and undone",
        within("_carry_out", _check_not_overtaken=nothing),
        "tests/faults/test_late_version_changes.py"
        "::test_rows_are_there_wherever_it_was_stopped[COPY_ON_WRITE-6-9-ways1-False]",
        "P2: commits since then are lost",
    ),
    Mutant(
        "a process that wakes deletes the timeline that others have moved",
        within("_carry_out", is_left_empty=lambda *_: False),
        "tests/faults/test_late_version_changes.py"
        "::test_rows_are_there_wherever_it_was_stopped[COPY_ON_WRITE-8-9-ways7-False]",
        "P2: a table has lost its timeline",
    ),
    Mutant(
        "properties that come late are believed",
        always("is_left_empty", False),
        "tests/faults/test_late_version_changes.py"
        "::test_rows_are_there_wherever_it_was_stopped[COPY_ON_WRITE-9-6-ways0-True]",
        "P2: a table reads as empty",
    ),
    Mutant(
        "a table with savepoints of log files goes back to version 6",
        instead("_leaves_logs", returns(False)),
        "tests/unit/services/upgrade/test_preparation.py"
        "::test_savepoints_of_log_files_can_be_read_in_the_later_version[9]",
        "a savepoint reads as other rows than it keeps",
    ),
    Mutant(
        "the column by which a database marks deletes is forgotten in version 9",
        Text(
            "        entries |= _OF_CHANGES.get(payload, {})",
            "        entries |= {keys.MERGE_MODE: MergeMode.COMMIT_TIME_ORDERING.value}",
        ),
        "tests/unit/services/upgrade/test_preparation.py"
        "::test_a_table_of_a_database_is_taken_along_without_its_payload[COPY_ON_WRITE]",
        "deleted rows are back",
    ),
    Mutant(
        "settled instants lose their completion times where they are packed",
        Text(
            '        ends = self.ends.tobytes() if self.layout != V1.version else b""',
            '        ends = (0 * self.ends).tobytes() if self.layout != V1.version else b""',
        ),
        "tests/unit/timeline/test_settled_instants.py"
        "::test_a_new_process_takes_the_settled_instants_from_the_summary[2]",
        "P14: a log file counts for a slice that it is not of",
    ),
    Mutant(
        "timelines of layout 2 are not summed up",
        Text(
            "    if not _is_due(kept.saved, timeline):\n        return\n    kept.saved =",
            "    if timeline.layout != 1 or not _is_due(kept.saved, timeline):\n"
            "        return\n    kept.saved =",
        ),
        "tests/faults/regressions/test_growth.py"
        "::test_a_log_file_was_searched_in_all_commits_since_its_slice_began[9]",
        "every process reads all commits of an active timeline that is long",
    ),
    Mutant(
        "old names are not counted where all are listed",
        always("loading._counted", (0, 0)),
        "tests/unit/timeline/test_settled_instants.py::test_what_other_processes_change_is_seen_at_any_time",
        "P13: what changes among old instants is not seen",
    ),
    Mutant(
        "what a process knows of commits outlives their rollback",
        within("LiveFiles.grow", any=returns(False)),
        "tests/unit/table/test_live_files.py"
        "::test_what_was_rolled_back_or_archived_meanwhile_is_not_asked_for",
        "P14: a healthy table is refused",
    ),
    Mutant(
        "a replacement hides file groups after it was archived",
        skipped("LiveFiles._let_go"),
        "tests/unit/table/test_live_files.py"
        "::test_a_file_group_whose_replacement_was_archived_may_begin_anew",
        "P14: a lost file is not missed",
    ),
    Mutant(
        "a log file whose blocks name no commit is not compared",
        within("FileSystemView._commit_of", newest_commit_of=nothing),
        "tests/faults/regressions/test_growth.py"
        "::test_a_damaged_log_file_is_searched_in_all_commits",
        "P13: damage is told as something else, or passes",
    ),
    Mutant(
        "a reader lists folders again after it has seen that no file is missing",
        instead("PinnedTable.slices", listing_again),
        "tests/faults/test_anomalies.py::test_a_reader_gives_the_rows_or_an_error",
        "P17: fewer rows, and no error",
    ),
    Mutant(
        "a write goes on with what a missing file left",
        skipped("WriteView._check"),
        f"{_MISSING}::test_no_write_continues_without_a_missing_file[COPY_ON_WRITE-6-BUCKET]",
        "P3: rows of long ago are back, and reads work again",
    ),
    Mutant(
        "a compaction is planned for what a missing file left",
        skipped("WholeView._check"),
        f"{_MISSING}::test_no_write_continues_without_a_missing_file[MERGE_ON_READ-9-GLOBAL_SIMPLE]",
        "the plan can never be carried out, also once the file is restored",
    ),
    Mutant(
        "a rescaling goes on with what a missing file left",
        Text("    view = plan.whole_view\n", "    view = plan.view\n"),
        f"{_MISSING}::test_no_write_continues_without_a_missing_file[COPY_ON_WRITE-6-BUCKET]",
        "P3: rows of long ago are back, and reads work again",
    ),
    Mutant(
        "an overwrite leaves a file group whose file is missing",
        within("replaced_groups", near_groups=returns(set())),
        f"{_MISSING}::test_no_write_continues_without_a_missing_file[COPY_ON_WRITE-9-BLOOM]",
        "P1: overwritten rows are back once the file is restored",
    ),
    Mutant(
        "a bucket that an overwrite begins anew is replaced with the one that is missing",
        within("_checked_record", replaced_groups=Around(lambda found, *given: found(*given[:2]))),
        f"{_MISSING}::test_no_write_continues_without_a_missing_file[COPY_ON_WRITE-6-BUCKET]",
        "P1: the rows of an overwrite are gone",
    ),
    Mutant(
        "a write asks all commits of a table that another engine wrote",
        instead("_Kept.near", lambda near, kept, *given: kept.grown(*given)),
        f"{_MISSING}::test_a_write_asks_the_newest_of_many_commits[6]",
        "what a write costs grows with the history",
    ),
    Mutant(
        "a write that asks the newest commits misses file groups that older ones replaced",
        skipped("LiveFiles._hide"),
        "tests/unit/table/test_live_files.py"
        "::test_a_writer_asks_the_newest_commits_where_nothing_sums_up_the_others",
        "a write is refused for files that were cleaned",
    ),
    Mutant(
        "a batch goes on without a file of an earlier one of its instant",
        within("check_listed", file_changes=returns(SimpleNamespace(stats={}))),
        "tests/integration/test_several_batches.py"
        "::test_a_file_of_an_earlier_batch_is_missing[6-BUCKET]",
        "P3: rows of the earlier batch are lost",
    ),
    Mutant(
        "blocks of instants that are not committed are read",
        instead(
            "LogReader._counts",
            lambda counts, reader, *given: counts(
                Changed(reader, view=Changed(reader.view, is_committed=returns(True))), *given
            ),
        ),
        "tests/unit/reader/test_snapshot.py"
        "::test_a_block_of_an_instant_that_is_not_committed_does_not_count",
        "P1: rows of a failed batch are read",
    ),
    Mutant(
        "what a merge came to is remembered of the base file alone",
        instead("FileSliceReader.outcome_key", lambda key, reader, slice_, logs: slice_.base),
        "tests/unit/slices/test_merge_outcomes.py::test_each_later_batch_is_seen",
        "P1: a query shows rows as they were at an earlier query",
    ),
    Mutant(
        "what the merge of a few keys came to is remembered as that of all",
        Text("if keeps and (pruner is None or pruner.keys is None):", "if keeps:"),
        "tests/unit/slices/test_merge_outcomes.py::test_the_merge_of_a_few_keys_is_that_of_no_others",
        "P3: committed rows that no later query finds",
    ),
    Mutant(
        "what merges came to is never forgotten",
        within("MergeOutcomes.put", _HELD_BYTES=1 << 60),
        "tests/unit/slices/test_merge_outcomes.py"
        "::test_the_outcomes_of_a_table_have_a_limit_and_leave_in_the_order_of_use",
        "memory grows with every slice that was read",
    ),
    Mutant(
        "a limit is one of each file",
        Text("left -= found[-1].num_rows", "left -= found[-1].num_rows // num_rows // 2"),
        f"{_COSTS}::test_a_few_rows_open_a_file[MERGE_ON_READ]",
        "more rows than were asked for",
    ),
    Mutant(
        "a limit cuts what was read whole",
        Text(
            "while left > 0 and (piece := next(rows, None)) is not None:",
            "while (piece := next(rows, None)) is not None:",
        ),
        f"{_COSTS}::test_a_few_rows_open_a_file[COPY_ON_WRITE]",
        "a few rows cost as much as all",
    ),
    Mutant(
        "a limit of Polars reads all files",
        Text("if n_rows is not None and predicate is None:", "if n_rows == -1:"),
        f"{_POLARS}::test_polars_reads_what_it_needs",
        "a few rows cost as much as all",
    ),
    Mutant(
        "Polars and DuckDB read all columns",
        instead(
            "QueryDataset.scanner",
            lambda scanner, self, _columns=None, filter=None, **_: scanner(self, None, filter),
        ),
        f"{_POLARS}::test_polars_reads_what_it_needs",
        "a query of two columns costs as much as one of all",
    ),
    Mutant(
        "the record index is not asked for the keys of a filter",
        always("PinnedTable._indexed", None),
        f"{METADATA_GOLDEN}::test_only_file_groups_of_the_keys_are_read",
        "a look-up by record key opens the files of all partitions",
    ),
    Mutant(
        "a key opens the file groups of all buckets",
        always("Pruner._keeps", True),
        f"{_SCANNER}::test_a_key_of_a_bucket_table_opens_one_file_group[MERGE_ON_READ]",
        "a look-up by record key opens all files",
    ),
    Mutant(
        "a key is looked for without bloom filters",
        instead(
            "KeyFilter.row_groups",
            lambda groups, keys, reader, numbers: groups(
                keys, Changed(reader, bloom_filter=nothing), numbers
            ),
        ),
        f"{_SCANNER}::test_a_bloom_filter_rules_out_keys_within_the_range",
        "a look-up by record key reads every file whose range has it",
    ),
    Mutant(
        "all columns of log blocks are read",
        instead(
            "decode_data_block",
            lambda decode, block, name, trusted, _columns: decode(block, name, trusted),
        ),
        f"{_COSTS}::test_log_blocks_come_with_the_columns_of_the_query[avro]",
        "a query of two columns costs as much as one of all",
    ),
    Mutant(
        "statistics of log blocks rule out none",
        always("FileSliceReader._may_match", True),
        f"{_COSTS}::test_log_blocks_that_the_filter_rules_out_are_not_read_once_it_is_known"
        "_what_they_hide[9]",
        "a query of few rows reads all log blocks",
    ),
    Mutant(
        "log blocks that a filter rules out hide nothing",
        Text("self.needed(columns), self.needed(())", "self.needed(columns), ()"),
        f"{_COSTS}::{_FIRST_QUERY}[6-BUCKET]",
        "P1: a query shows rows that later ones have replaced",
    ),
    Mutant(
        "log blocks with positions that a filter rules out hide nothing",
        Text(
            "columns_of = self._columns_of(slice_, schema.names, fewest, pruner, places.hidden)",
            "columns_of = self._columns_of(slice_, schema.names, (), pruner, places.hidden)",
        ),
        f"{_COSTS}::{_FIRST_QUERY}[9-BLOOM]",
        "P1: a query shows rows that later ones have replaced",
    ),
    Mutant(
        "statistics of log blocks rule out none for Spark",
        instead(
            "LoggedRows.read",
            lambda read, logged, found, names, _pruner: read(logged, found, names),
        ),
        f"{_COSTS}::test_log_blocks_that_the_filter_rules_out_are_not_read_for_spark",
        "a query of few rows reads all log blocks",
    ),
    Mutant(
        "rows of the log blocks that a filter leaves are remembered as those of all",
        Text(
            'outcomes.put(("records", key), MergeOutcome.of([], places.of(found)))',
            'outcomes.put(("records", key), MergeOutcome.of([], places.of(places.shown(found))))',
        ),
        "tests/unit/reader/test_logged_rows.py::test_what_a_filter_leaves_is_not_remembered_as_all",
        "P3: committed rows that no later query finds",
    ),
    Mutant(
        "rows of some keys are remembered as those of all",
        Text(
            "if pruner is None or pruner.keys is None:\n            outcomes",
            "if True:\n            outcomes",
        ),
        "tests/unit/reader/test_logged_rows.py::test_what_a_filter_leaves_is_not_remembered_as_all",
        "P3: committed rows that no later query finds",
    ),
    Mutant(
        "rows of log blocks that a filter rules out come without values",
        instead("Places.shown", lambda _shown, _places, rows: rows),
        f"{_COSTS}::{_FIRST_QUERY}[6-BUCKET]",
        "P3: rows with empty columns that nobody has written",
    ),
    Mutant(
        "the first query of a slice reads all row groups of its base file",
        Text(
            "shown = base if known is not None else self._pruned(", "shown = base or self._pruned("
        ),
        f"{_COSTS}::{_FIRST_QUERY}[6-BUCKET]",
        "a query of few rows reads all base files",
    ),
    Mutant(
        "a block of Parquet is read with all of its columns",
        Text(
            "if columns is not None:\n                schema = pa",
            "if False:\n                schema = pa",
        ),
        f"{_COSTS}::test_log_blocks_come_with_the_columns_of_the_query[parquet]",
        "a query of two columns costs as much as one of all",
    ),
    Mutant(
        "row groups without staying rows move the positions of others",
        Text("start, end = ends[number : number + 2]", "start, end = ends[0], ends[-1]"),
        "tests/unit/slices/test_merge_outcomes.py::test_each_later_batch_is_seen",
        "P1: replaced rows come back, and others are lost",
    ),
    Mutant(
        "Arrow decides which rows Polars gets",
        Text("return found.implied or ALL if isinstance(found, Opaque) else ALL", "return found"),
        f"{_POLARS}::test_polars_finds_what_it_finds_in_all_rows[COPY_ON_WRITE]",
        "P3: rows without a value that a query does not find",
    ),
    Mutant(
        "filters of Polars reach no file",
        within("_Source.__call__", _implied=returns(ALL)),
        f"{_POLARS}::test_polars_reads_what_it_needs",
        "a query reads the whole table",
    ),
    Mutant(
        "filters of DuckDB are dropped",
        instead(
            "QueryDataset.scanner", lambda scanner, self, columns=None, **_: scanner(self, columns)
        ),
        "tests/unit/reader/test_query_dataset.py"
        "::test_duckdb_finds_what_it_finds_in_all_rows[COPY_ON_WRITE]",
        "P1: a query shows rows that its filter rules out",
    ),
    Mutant(
        "row groups of a range have rows of its last commit",
        Text(
            "In((COMMIT_TIME,), pa.array(self.only_commits, pa.string()))",
            "In((COMMIT_TIME,), pa.array(self.only_commits[-1:], pa.string()))",
        ),
        f"{_COSTS}::test_row_groups_of_every_commit_of_a_range_are_read",
        "P3: committed rows that a stream of the table does not get",
    ),
    Mutant(
        "row groups of other commits are read for a range",
        always("FileSliceReader._may_count", True),
        f"{_COSTS}::test_row_groups_without_rows_of_the_range_are_not_read[COPY_ON_WRITE-6]",
        "a stream of a table reads files whole",
    ),
    Mutant(
        "rows of log files that a filter rules out are handed to Spark",
        within("SliceRows.__call__", matching=lambda rows, _: rows),
        f"{_FILTERED}[MERGE_ON_READ-8-parquet-COMMIT_TIME_ORDERING]",
        "a query takes all rows of log files through Python",
    ),
    Mutant(
        "statistics of a base file rule out rows of its log files",
        instead("Pruner.row_groups", lambda row_groups, *given: row_groups(*given[:-1], False)),
        f"{_SCANNER}::test_rows_that_a_hook_merges_are_found_whatever_the_base_file_holds",
        "P3: a row is merged without the one that is stored, which a filter rules out",
    ),
    Mutant(
        "rows that log files add to a known merge are not counted",
        within("MergeOutcome.num_live", sum=returns(0)),
        f"{_COSTS}::test_rows_of_a_known_merge_are_counted_without_the_base_file[9]",
        "a wrong count of rows",
    ),
    Mutant(
        "a file is read whole to count its rows",
        Text("if not columns and slice_.base is not None:", "if False:"),
        f"{_COSTS}::test_rows_are_counted_by_footers_alone[6]",
        "a count costs as much as a scan",
    ),
    Mutant(
        "a column of an Avro block is taken for the one before it",
        instead(
            "AvroType.with_fields",
            lambda fields, node, names: Changed(
                fields(node, names), children=fields(node, names).children[::-1]
            ),
        ),
        "tests/unit/formats/log/test_data_block.py"
        "::test_few_columns_are_those_of_the_whole_block[encode_avro_block]",
        "P1: a query shows values of other columns",
    ),
    Mutant(
        "a log compaction is as new as where it lies",
        within("LogReader.open", in_order=lambda places: places),
        "tests/integration/test_log_compactions.py::test_what_was_written_meanwhile_is_newer",
        "P3: rows that were written between its plan and its end are lost",
    ),
    Mutant(
        "what was compacted twice counts once more",
        Text("taken = stands_for.get(time, time)", "taken = time"),
        "tests/unit/table/test_block_order.py"
        "::test_a_log_compaction_is_as_old_as_what_it_stands_for",
        "P3: rows that were written between its plan and its end are lost",
    ),
    Mutant(
        "a metadata table that is behind is believed",
        instead("trust.lacking", lambda *_: iter(())),
        f"{METADATA}::test_an_instant_that_it_lacks_makes_reads_list_folders",
        "rows that were written without it are lost without an error",
    ),
    Mutant(
        "a metadata table that still has what was rolled back is believed",
        within("lacking", undone_by=returns(())),
        f"{METADATA}::test_a_rollback_needs_no_delta_commit_but_what_it_undid_must_be_gone",
        "files that a rollback deleted are read",
    ),
    Mutant(
        "what was completed after the first listing counts as listed",
        always("_was_listed", True),
        f"{METADATA}::test_an_instant_that_was_completed_after_the_first_listing_is_not_in_it",
        "rows of a concurrent writer without a metadata table are lost",
    ),
    Mutant(
        "files that commits name are not missed in a metadata table",
        within("PinnedTable._recorded", check_nothing_is_missing=nothing),
        f"{METADATA}::test_each_divergence_is_named",
        "rows of a file that it lacks are lost without an error",
    ),
    Mutant(
        "a write that is decided fails as if it were not",
        Text(
            "except HoodieError as error:  # of the storage, or", "except StorageError as error:  #"
        ),
        f"{METADATA}::test_a_write_that_it_cannot_follow_is_not_written_again",
        "rows that are inserted again after the error are doubled",
    ),
    Mutant(
        "a metadata table without one of its log files is believed",
        skipped("MetadataTable._check_logs_are_there"),
        f"{METADATA}::test_a_damaged_one_is_not_believed",
        "files that a clean deleted are read, or others are missed",
    ),
    Mutant(
        "a partition of a metadata table that is being built is read",
        Text("for name in listed if name not in building", "for name in listed if name"),
        f"{METADATA}::test_a_partition_that_is_being_built_is_not_read",
        "rows of files that are not in it yet are lost",
    ),
    Mutant(
        "a metadata table's block of an instant that is pending in the table counts",
        Text(" and not self.data.is_pending(place.time)", ""),
        f"{METADATA}::test_a_block_of_an_instant_that_is_pending_in_the_table_does_not_count",
        "files are taken for deleted by what may be rolled back",
    ),
    Mutant(
        "a rollback block of a metadata table hides nothing",
        Text("for p, one in places.items() if p.time != undone", "for p, one in places.items()"),
        f"{METADATA}::test_a_rollback_block_hides_what_is_before_it_and_not_what_is_written_again",
        "files of a failed attempt are listed, and what it deleted is missed",
    ),
    Mutant(
        "a file that a metadata table deletes stays in its list",
        Text('elif not entry["isDeleted"]:', "else:"),
        "tests/unit/metadata_table/test_payload.py::test_files_are_added_deleted_and_never_shrink",
        "cleaned files are read",
    ),
    Mutant(
        "statistics of a base file rule out what its log files say",
        Text("if found.base is not None and not found.logs)", "if found.base is not None)"),
        f"{METADATA_GOLDEN}::test_filters_return_the_same_rows_with_statistics",
        "rows that were updated to match a filter are not found",
    ),
    Mutant(
        "decimals of statistics have the scale of another version",
        Text('int(stored["additionalInfo"].partition(",")[2])', "_SCALE"),
        f"{METADATA_GOLDEN}::test_bounds_of_base_files_are_those_of_their_values",
        "files with matching decimals are skipped",
    ),
    Mutant(
        "a column with a null counts as one without values",
        Text("if nulls == count:", "if nulls:"),
        "tests/unit/metadata_table/test_statistics.py"
        "::test_counts_say_whether_there_are_nulls_and_values",
        "files with matching values beside nulls are skipped",
    ),
    Mutant(
        "strings that a footer has no room for count as null",
        Text("if nulls and any(is_one(kind) for is_one in _WITHOUT_LENGTH):", "if False:"),
        "tests/unit/metadata_table/test_statistics.py"
        "::test_counts_say_whether_there_are_nulls_and_values",
        "files with matching strings of more than 4 KB are skipped",
    ),
    Mutant(
        "rows of log files have no statistics",
        Text("self._ranges.add(conform(stamped, context.schema))", "pass"),
        f"{_STATISTICS}"
        "::test_records_are_those_of_the_files_that_writes_and_services_leave[MERGE_ON_READ-9]",
        "Hudi skips log files with matching rows",
    ),
    Mutant(
        "a partition has the ends of its newest files",
        Text(
            "**_recorded(added, version),\n            }",
            "**_recorded(added, version), 'isTightBound': True,\n            }",
        ),
        f"{_STATISTICS}::test_a_writer_that_ends_after_a_later_one_is_found_too[9]",
        "partitions with matching rows are skipped",
    ),
    Mutant(
        "a partition keeps the ends of a write that is undone",
        Text("added = restored_ranges(table, metadata, instant, schema, index)", "pass"),
        f"{_STATISTICS}"
        "::test_statistics_that_hudi_narrowed_are_wide_again_once_it_is_undone[roll_back]",
        "rows that a rollback brings back are not found by filters",
    ),
    Mutant(
        "only partitions that the undone write has narrowed are widened",
        Text(
            "for key, _ in chain.from_iterable(logged)}",
            "for key, one in chain.from_iterable(logged) if one[STATS]['isTightBound']}",
        ),
        f"{_STATISTICS}"
        "::test_what_hudi_narrowed_is_wide_again_once_an_older_write_is_undone[upsert]",
        "rows that a second rollback brings back are not found by filters",
    ),
    Mutant(
        "only partitions that the undone write wrote to are widened",
        Text("if action in REPLACING or not named", "if not named"),
        f"{_STATISTICS}"
        "::test_what_hudi_narrowed_is_wide_again_once_an_older_write_is_undone[overwrite]",
        "rows of replaced file groups that a rollback brings back are not found by filters",
    ),
    Mutant(
        "the ends of another type are those of the type of now",
        Text(
            "if not _is_alike(statistics, _recorded(widest(found), version)):",
            "if False:",
        ),
        "tests/unit/metadata_table/test_column_records.py"
        "::test_the_range_of_a_record_of_another_type_has_all_values",
        "partitions with matching rows are skipped after a rollback",
    ),
    Mutant(
        "ends of two types of a column are merged",
        always("_is_alike", True),
        "tests/unit/metadata_table/test_column_records.py"
        "::test_a_decimal_of_another_scale_may_have_any_value",
        "partitions with matching rows are skipped, or Hudi fails on them",
    ),
    Mutant(
        "records of cleaned files stay",
        Text("for path in sorted(gone):", "for path in ():"),
        f"{_STATISTICS}::test_a_clean_takes_the_records_of_its_files_away",
        "the metadata table only grows",
    ),
    Mutant(
        "files are read again for their statistics",
        Text("changes.ranges.get(path) or stored_ranges", "stored_ranges"),
        f"{_STATISTICS}::test_no_file_is_read_again_for_its_statistics",
        "a commit takes as long as its rows are many",
    ),
    Mutant(
        "base files of a compaction have bloom filters only by the index",
        Text("if not stores_keys or has_bloom_filters(properties):", "if not stores_keys:"),
        f"{_FILTERS}::test_so_do_files_of_buckets_where_nothing_is_looked_up[MERGE_ON_READ]",
        "Hudi finds no filter of the file, and fails",
    ),
    Mutant(
        "base files of a table with bloom filters have one only by the index",
        always("has_bloom_filters", False),
        f"{_FILTERS}::test_so_do_files_of_buckets_where_nothing_is_looked_up[COPY_ON_WRITE]",
        "Hudi finds no filter of the file, and fails",
    ),
    Mutant(
        "columns that a table gets later have no statistics",
        Text("if any(chosen == default[: len(chosen)] for default in found):", "if False:"),
        f"{_STATISTICS}::test_columns_that_a_table_gets_later_are_indexed_as_hudi_does",
        "Hudi takes them for null in files of this library, and skips these",
    ),
    Mutant(
        "partitions are taken to have no nulls where their files say so",
        Text("replace(bounds, nulls=True)", "bounds"),
        f"{METADATA_GOLDEN}::test_bounds_of_partitions_hold_all_of_their_values",
        "rows without a column of later files are not found by IS NULL",
    ),
    Mutant(
        "statistics of partitions count where merging makes new values",
        Text("if self.merge_hook is not None or", "if"),
        f"{METADATA_GOLDEN}::test_partitions_are_ruled_out_by_what_they_hold",
        "rows whose merged values match are not found",
    ),
    Mutant(
        "the ends of numbers beside NaN are those that Hudi records",
        instead("statistics._without_nan", lambda _, low, high: (low, high)),
        "tests/unit/metadata_table/test_statistics.py"
        "::test_where_a_file_may_hold_other_values_nothing_is_sure",
        "files with matching numbers beside NaN are skipped",
    ),
    Mutant(
        "the ends of a recorded column leave NaN out",
        Text("high = math.nan", "pass"),
        "tests/unit/formats/test_column_ranges.py::test_nan_is_the_highest_number",
        "Hudi skips files with NaN, which is greater than any number",
    ),
    Mutant(
        "the highest of long values is cut off",
        instead("column_ranges._above", lambda _, end: end[:512]),
        "tests/unit/formats/test_column_ranges.py"
        "::test_ends_of_a_long_value_are_shorter_and_still_hold_it",
        "Hudi skips files with matching strings",
    ),
    Mutant(
        "decimals in bytes are merged in the order of the bytes",
        Text(
            "branch == _DECIMAL or (kind is not None and",
            "branch == _DECIMAL and (kind and",
        ),
        "tests/unit/metadata_table/test_column_records.py"
        "::test_negative_decimals_are_less_than_positive_ones",
        "partitions with matching decimals are skipped",
    ),
    Mutant(
        "days are stored in the wrapper of numbers",
        Text(
            "WRAPPERS[next(iter(wrapped))], wrapped", 'WRAPPERS["2"], {"2": [*wrapped.values()][0]}'
        ),
        "tests/unit/metadata_table/test_record_schema.py::test_each_value_is_in_its_wrapper[8-7]",
        "Hudi skips files that have rows with the day",
    ),
    Mutant(
        "days of the other calendar are compared",
        Text("return value if value >= _FIRST_DAY else None", "return value"),
        "tests/unit/metadata_table/test_statistics.py"
        "::test_where_a_file_may_hold_other_values_nothing_is_sure",
        "files of old writers with matching days are skipped",
    ),
    Mutant(
        "strings between ends in Java's order are taken for between them by their bytes",
        within("recorded_bounds", may_differ_in_java=lambda low, high: False),
        "tests/faults/regressions/test_filtered_ranges.py"
        "::test_a_string_was_missed_that_java_orders_otherwise",
        "partitions with rows that match are skipped",
    ),
    Mutant(
        "a metadata table is never compacted",
        within("put_delta_commit", look_after=nothing),
        f"{_KEPT}::test_it_stays_small_in_a_long_stream",
        "Hudi's archiving of the table stops, and reads merge all of its history",
    ),
    Mutant(
        "a metadata table is compacted at the time of the instant that comes next",
        Text("if time and time == begun and not pending:", "if not time:"),
        "tests/faults/regressions/test_times_of_the_metadata_table.py"
        "::test_an_instant_followed_the_last_one_after_a_millisecond[9]",
        "readers miss the instant there, and list folders for good",
    ),
    Mutant(
        "a log file is put before its instant is inflight",
        within("put_delta_commit", put_pending=nothing),
        f"{_KEPT}::test_a_log_file_is_put_into_an_instant_that_is_inflight",
        "what a dead writer recorded counts once the JVM has archived past it",
    ),
    Mutant(
        "a log file is put beside a plan that the same process has just put",
        Text(
            "look_after(current, instant.time)\n        listed, timeline = _seen",
            "look_after(current, instant.time)\n        _, _ = _seen",
        ),
        f"{_KEPT}::test_it_stays_small_in_a_long_stream",
        "files that are in no slice are not listed",
    ),
    Mutant(
        "archiving does not ask for the compactions of a metadata table",
        within("archiving._plan", latest_compaction=lambda _: "9"),
        f"{_KEPT}::test_it_stays_small_in_a_long_stream",
        "Hudi on the JVM leaves out log files of the metadata table, and with them rows",
    ),
    Mutant(
        "a metadata table's own times have a suffix in layout 2 too",
        Text(
            "max(since) + _SUFFIX if timeline.layout == V1.version else following(max(since))",
            "max(since) + _SUFFIX",
        ),
        f"{_KEPT}::test_hudi_rs_reads_by_one_that_was_compacted_and_cleaned[COPY_ON_WRITE-9]",
        "hudi-rs leaves out rows of file groups that are older than the compaction",
    ),
    Mutant(
        "a compaction of a metadata table does not wait for pending instants",
        within("compact_if_due", any=returns(False)),
        f"{METADATA_COMPACTION}::test_it_waits_for_older_instants_of_the_table",
        "files of an instant that is rolled back are listed",
    ),
    Mutant(
        "a compaction of a metadata table waits for no clean",
        Text(
            "if instant.action is not Action.CLEAN or instant.time in recorded:",
            "if instant.action is not Action.CLEAN:",
        ),
        f"{METADATA_COMPACTION}::test_it_waits_for_a_clean_once_that_is_recorded[True]",
        "files that the clean has deleted are listed",
    ),
    Mutant(
        "a compaction of a metadata table keeps deletes for ever",
        within("compaction._merged", without_deletes=lambda record: record),
        f"{METADATA_COMPACTION}::test_base_files_have_no_deletes",
        "its files grow with the history of the table",
    ),
    Mutant(
        "a compaction of a metadata table takes what its base file says for newer",
        Text("if key in changed or not is_same:", "if not is_same:"),
        f"{METADATA_COMPACTION}::test_records_are_the_same_and_in_base_files_alone",
        "files that were added since are not listed",
    ),
    Mutant(
        "a base file of a metadata table that a dead writer left stays",
        within("compaction._rewritten", _delete_others=nothing),
        f"{METADATA_COMPACTION}::test_one_of_another_engine_is_continued_by_its_plan",
        "other engines read half of a file in place of the whole one",
    ),
    Mutant(
        "a clean of a metadata table that was interrupted is never finished",
        within("_finish_cleans", Action=SimpleNamespace(CLEAN=None)),
        f"{METADATA_UPKEEP}::test_what_a_crash_left_is_done_after_the_next_compaction[v6_mor_files_ri__logs-4]",
        "Hudi's archiving of its timeline stops before the clean",
    ),
    Mutant(
        "a clean of a metadata table deletes versions that are read",
        within("upkeep._superseded", _VERSIONS=1),
        f"{METADATA_UPKEEP}::test_files_and_instants_stay_few",
        "queries that take longer than a few commits fail",
    ),
    Mutant(
        "instants of a metadata table are archived that the table still has",
        Text("latest_compaction(timeline), metadata.data.start,", "latest_compaction(timeline),"),
        f"{METADATA_UPKEEP}::test_what_may_be_of_active_instants_is_not_archived",
        "nobody can tell any more whether the metadata table has caught up",
    ),
    Mutant(
        "statistics of a partition at a later moment are believed",
        within("partition_bounds", is_ahead=returns(False)),
        f"{METADATA_GOLDEN}::test_statistics_of_a_later_moment_rule_out_no_partition",
        "a query of the past misses rows that have been overwritten since",
    ),
    Mutant(
        "a record index of a later moment is believed",
        always("trust.is_ahead", False),
        f"{METADATA_GOLDEN}::test_a_record_index_of_a_later_moment_is_not_believed",
        "rows that have been moved since are not found",
    ),
    Mutant(
        "keys are looked up in another file group than Hudi's",
        within(
            "stored._file_groups",
            file_groups_of=lambda keys, groups: pc.binary_length(keys).to_numpy() % groups,
        ),
        f"{METADATA_GOLDEN}::test_the_record_index_has_the_file_group_of_each_key",
        "rows with the key are not found",
    ),
    Mutant(
        "instants are archived that a metadata table still needs",
        Text("commits = tuple(i for i in commits if not end or padded(i.time) < end)", ""),
        "tests/unit/services/test_archive_planner.py::test_nothing_is_archived_from_an_end_on",
        "Hudi on the JVM leaves out log files of the metadata table, and with them rows",
    ),
    Mutant(
        "verify does not compare the metadata table",
        always("recorded_findings", []),
        f"{METADATA}::test_each_divergence_is_named",
        "nobody learns that other engines miss rows",
    ),
    Mutant(
        "log files are merged in the order of their names",
        instead("slicing._age", lambda _, log: (0, str(log.name))),
        "tests/faults/test_promises.py::test_eleven_log_files_are_merged_in_their_order",
        "an older row wins from the tenth log file on",
    ),
    Mutant(
        "a damaged block is skipped",
        within(
            "LogReader._blocks",
            read_blocks=Around(lambda read, *given, **_: read(*given, lenient=True)),
        ),
        "tests/faults/test_promises.py::test_a_damaged_block_is_never_skipped",
        "P17: rows are lost without a word",
    ),
    Mutant(
        "checksums are not compared",
        skipped("checksums._compare"),
        "tests/hostile/test_byte_sweep.py::test_damage_is_named_with_both_checksums",
        "P17: a flipped byte is other rows",
    ),
    Mutant(
        "footers are not compared",
        within("open_footer", _compare=nothing),
        "tests/unit/table/test_checksums.py::"
        "test_a_greatest_value_that_is_another_rules_out_no_rows",
        "P17: a flipped bit in a footer hides rows",
    ),
    Mutant(
        "only footers are compared",
        within("open_footer", partial=lambda *_: nothing),
        "tests/unit/table/test_checksums.py::"
        "test_a_file_is_compared_no_further_than_the_footer_that_rules_it_out",
        "P17: a flipped byte is other rows",
    ),
    Mutant(
        "the first of several parts that is ruled out is not compared",
        Text("if rows.row_groups or parts > 1:", "if rows.row_groups:"),
        "tests/unit/table/test_checksums.py::"
        "test_the_reader_of_the_first_of_several_parts_compares_all",
        "P17: a flipped byte is other rows, as no other part compares the file",
    ),
    Mutant(
        "the length of a block is trusted",
        Text("        if not 0 <= size <= self._end - self._at:\n", "        if size < 0:\n"),
        "tests/unit/formats/log/test_log_block.py::test_a_block_cut_anywhere_is_corrupt",
        "P17, P22: half a block is read, or memory for a forged length is taken",
    ),
]

MERGES = [
    Mutant(
        "of equal ordering values the earlier wins",
        within(
            "Merger.new_wins",
            order_codes=Around(
                lambda codes, pairs, rows: 2 * codes(pairs, rows) + (np.arange(rows) < rows // 2)
            ),
        ),
        f"{MERGER}::test_merge_decides_key_by_key",
        "P10: the same rows give another table",
    ),
    Mutant(
        "the second ordering field is not looked at",
        instead("order_codes", lambda codes, columns, rows: codes(columns[:1], rows)),
        "tests/integration/test_several_ordering_fields.py"
        "::test_the_first_field_decides_and_the_next_where_it_ties",
        "an older row wins",
    ),
    Mutant(
        "a delete wins over a later row",
        within("Merger.new_wins", unconditional=lambda ordering, deleted: deleted),
        "tests/faults/test_promises.py::test_a_late_delete_takes_no_newer_row_away",
        "a late delete takes a newer row away",
    ),
    Mutant(
        "a null integer is as high as 0",
        within(
            "ordering._codes",
            _integers=Around(lambda integers, column: pc.fill_null(integers(column), 0)),
        ),
        f"{MERGE_RULE}::test_a_null_is_lower_than_any_value",
        "a null takes the place of a value",
    ),
    Mutant(
        "a null text takes part as the later one",
        instead(
            "unconditional",
            lambda unconditional, columns, deleted: unconditional(columns, np.ones_like(deleted)),
        ),
        f"{MERGE_RULE}::test_a_null_is_lower_than_any_value",
        "which row wins depends on how rows are cut into batches",
    ),
    Mutant(
        "a null beside another ordering field is stored as 0 in a delete",
        within(
            "delete_block._fill",
            zigzag=Around(lambda zigzag, numbers: zigzag(np.zeros_like(numbers))),
        ),
        "tests/integration/test_several_ordering_fields.py"
        "::test_a_null_beside_integers_is_lower_than_they_are",
        "a delete takes a newer row away once it is in a log file",
    ),
    Mutant(
        "a copy-on-write table forgets that a row came after a delete",
        instead(
            "Merger.new_wins",
            lambda wins, merger, old, old_at, new, new_at: wins(
                merger, old, old_at, Changed(new, replacing=None), new_at
            ),
        ),
        f"{MERGE_RULE}::test_a_row_after_a_delete_in_its_batch_was_merged_into_the_deleted_one",
        "a deleted row is back, in one batch and not in two",
    ),
    Mutant(
        "a merge hook moves a row to another key or partition",
        Text("hook_call(hook, places)", "hook_call(hook)"),
        "tests/integration/test_merge_hook.py::test_a_hook_moves_no_row[6-COPY_ON_WRITE]",
        "P3: queries that ask for what the row says do not find it",
    ),
    Mutant(
        "a merge hook takes the key from a row that is not there",
        Text("[new] if no_old else [new, old]", "[new, old]"),
        "tests/unit/record/merge/test_merge_hook.py::test_a_row_keeps_key_and_partition_of_one_of_the_two",
        "P3: a row is stored without its key",
    ),
    Mutant(
        "a merge-on-read table applies deletes as a copy-on-write table does",
        within("merger_of", Merger=Around(lambda merger, mode, _: merger(mode, True))),
        f"{MERGE_RULE}::test_a_deleted_row_of_a_base_file_is_back_as_in_hudi",
        "a reader here finds other rows than Hudi",
    ),
    Mutant(
        "a log does not tell that a row came after a delete",
        instead(
            "AppendHandle.write",
            lambda write, handle, records, at=None: write(
                handle, Changed(records, replacing=None), at
            ),
        ),
        f"{MERGE_RULE}::test_a_batch_forgot_that_a_row_came_after_a_delete",
        "a row loses against one that was deleted before it",
    ),
    Mutant(
        "a second delete makes an unconditional one conditional",
        instead(
            "_cleared", lambda cleared, *given: (cleared(*given)[0], cleared(*given)[1] & False)
        ),
        "tests/golden/test_merge_histories.py::test_rows_win_as_in_hudi",
        "a deleted row is back",
    ),
    Mutant(
        "partition values are not escaped",
        within("partition_path.folders", escape=lambda text: text),
        "tests/unit/record/keys/test_partition_path.py::test_styles",
        "P20: two values share a folder",
    ),
    Mutant(
        "a partition path may go up",
        instead("check_inside", lambda check, path, *field: check(path.replace(".", "x"), *field)),
        "tests/unit/record/keys/test_partition_path.py::test_paths_out_of_the_table_are_refused",
        "P20: a row writes outside the table",
    ),
]

STORAGE = [
    Mutant(
        "put-if-absent on disk is a rename",
        within("LocalStorage.put_pieces", _link=os.replace),
        "tests/unit/storage/test_local.py"
        "::test_a_name_that_another_process_takes_after_the_look_is_not_overwritten",
        "P5, P6: two processes take one name",
    ),
    Mutant(
        "the name of a file appears before its content is durable",
        within("_write_temporary", os=Changed(os, fsync=nothing)),
        "tests/unit/storage/test_local.py"
        "::test_content_is_synced_before_its_name_and_its_folder_after",
        "P3: an empty commit after a power cut",
    ),
    Mutant(
        "a put returns before its name is durable",
        within("_put_once", _sync_folder=nothing),
        "tests/faults/test_power_loss.py::test_power_may_be_lost_at_any_moment[first batch, cow-6]",
        "P3: a commit that has returned is gone after a power cut",
    ),
    Mutant(
        "the files of a rolled-back write may come back",
        within("LocalStorage.delete", _sync_folder=nothing),
        "tests/faults/test_power_loss.py::test_power_may_be_lost_at_any_moment[rollback, cow-6]",
        "P16: readers that list folders see them",
    ),
    Mutant(
        "the retry of a put takes a taken name for its own",
        always("RetryingStorage._holds", True),
        f"{RETRYING}::test_a_put_with_a_lost_answer_may_be_another_writers",
        "P5: two writers win",
    ),
    Mutant(
        "the retry of a put loses against its own first try",
        always("RetryingStorage._holds", False),
        f"{RETRYING}::test_a_put_with_a_lost_answer_is_recognised_by_its_content",
        "P4: a commit that took effect is told as failed (Hudi #14373)",
    ),
    Mutant(
        "an unknown outcome is told as refused",
        Text(
            "                if maybe_done:  # it says nothing about the earlier try\n",
            "                if False:\n",
        ),
        f"{RETRYING}::test_a_later_refusal_does_not_settle_an_unknown_outcome",
        "P4: unknown is taken for failed",
    ),
    Mutant(
        "a read on S3 asks for the size first",
        instead("S3Storage.read", lambda read, storage, path: FsspecStorage.read(storage, path)),
        "tests/contract/storage/test_s3.py::test_a_file_is_read_and_a_folder_listed_by_one_request",
        "a micro-batch pays for half as many requests again",
    ),
    Mutant(
        "an upload in parts is completed without a condition",
        Text(', IfNoneMatch="*")', ")"),
        "tests/contract/storage/test_storage_contract.py"
        "::test_a_large_output_is_a_new_file_too[s3]",
        "P5: a data file is overwritten",
    ),
    Mutant(
        "a write that is rolled back leaves its parts",
        within("delete_leftovers", abort_uploads=nothing),
        "tests/contract/storage/test_s3.py"
        "::test_parts_of_a_dead_writer_are_deleted_with_its_write[COPY_ON_WRITE]",
        "P16: parts that no listing shows are paid for",
    ),
    Mutant(
        "parts of all files are deleted with those of some",
        Text('if upload["Key"] in keys:', "if True:"),
        "tests/contract/storage/test_s3.py::test_parts_of_some_files_are_deleted[s3]",
        "P5: a living writer fails",
    ),
    Mutant(
        "an upload that fails leaves its parts",
        skipped("_Parts.abort"),
        "tests/contract/storage/test_s3.py::test_an_upload_left_by_an_exception_is_aborted[s3]",
        "P16: parts that no listing shows are paid for",
    ),
    Mutant(
        "a listing of names that begin alike on S3 asks for all",
        instead("S3Storage.names", lambda names, storage, path, beginning: names(storage, path)),
        "tests/contract/storage/test_s3.py::test_no_names_are_listed_but_those_that_begin_alike",
        "each task lists the timeline, and the time of another action counts",
    ),
    Mutant(
        "a large file on Azure or Google takes a name that is taken",
        within("object_storage._Upload.__init__", FileExistsError=FileNotFoundError),
        f"{OBJECTS}::test_a_large_file_is_sent_in_parts",
        "P5: a data file is overwritten",
    ),
    Mutant(
        "a large file on Azure or Google is completed once more after a lost answer",
        within("object_storage._Upload.complete", UnavailableError=OSError),
        f"{OBJECTS}::test_a_file_whose_last_request_failed_is_looked_for",
        "a file that is there fails its task",
    ),
    Mutant(
        "the retry of a completion takes a taken name for its own",
        always("_RetryingUpload._is_there", True),
        "tests/contract/storage/test_s3.py"
        "::test_a_lost_completion_does_not_take_a_file_of_others_for_its_own",
        "P5: a commit names a file of another writer",
    ),
    Mutant(
        "paths may leave the base path",
        within(
            "LocalStorage._inside",
            os=Changed(os, path=Changed(os.path, realpath=lambda full: full)),
        ),
        "tests/unit/storage/test_local.py::test_links_that_lead_outside_are_refused",
        "P20: files outside the table are written",
    ),
    Mutant(
        "a put on Google and Azure has no condition",
        instead(
            "ObjectStorage._put",
            lambda put, storage, verb, path, data, _: put(storage, verb, path, data, "overwrite"),
        ),
        "tests/contract/storage/test_storage_contract.py"
        "::test_a_second_put_is_refused_and_changes_nothing[obstore]",
        "P5, P6: two processes take one name",
    ),
    Mutant(
        "a put on HDFS overwrites",
        instead(
            "HdfsStorage._put",
            lambda put, storage, verb, path, data, *, overwrite: put(
                storage, verb, path, data, overwrite=True
            ),
        ),
        "tests/contract/storage/test_storage_contract.py"
        "::test_a_second_put_is_refused_and_changes_nothing[hdfs in memory]",
        "P5, P6: two processes take one name",
    ),
    Mutant(
        "an output on HDFS that fails stays under its name",
        skipped("HdfsStorage.delete"),
        "tests/contract/storage/test_storage_contract.py"
        "::test_an_output_left_by_an_exception_is_gone[hdfs in memory]",
        "P16: a part of a file is taken for the file",
    ),
    Mutant(
        "unfinished files on HDFS are listed",
        within("HdfsStorage._scan", is_unfinished=lambda name: False),
        "tests/unit/storage/test_hdfs_storage.py"
        "::test_what_a_killed_process_has_left_is_not_listed",
        "P16: a part of a file is taken for a file of the table",
    ),
    Mutant(
        "obstore repeats a put by itself",
        within("clouds.connect", _NO_RETRIES=None),
        "tests/unit/storage/test_clouds.py::test_what_a_store_is_opened_with",
        "P4: after a lost answer its own file is taken for another writer's",
    ),
    Mutant(
        "a missing file keeps others from being deleted",
        Text("        if len(keys) > 1:  # the first", "        if False:  # the first"),
        "tests/unit/storage/test_object_storage.py::test_what_is_not_there_keeps_no_other_file",
        "P16: files of a rolled-back write stay",
    ),
    Mutant(
        "obstore is used in the child of a fork",
        within("clouds.connect", refuse_fork=nothing),
        "tests/unit/storage/test_clouds.py::test_a_process_that_was_forked_from_a_user_is_refused",
        "a worker hangs for ever",
    ),
]

WRITERS = "tests/integration/test_several_writers.py"
_STORAGE_LOCK = "tests/unit/transaction/test_storage_lock.py"
_TAKEN_OVER = (
    "tests/integration/test_several_writers.py"
    "::test_a_writer_whose_lock_another_engine_has_taken_decides_nothing[COPY_ON_WRITE]"
)
HUDIS_LOCK = [
    Mutant(
        "a writer decides without a look at its lock",
        skipped("Exclusion._check_held"),
        _TAKEN_OVER,
        "two engines complete at the same time, and neither sees the other's conflict",
    ),
    Mutant(
        "a lock that was taken is held for ever",
        always("StorageLock.is_held", True),
        _TAKEN_OVER,
        "two engines complete at the same time, and neither sees the other's conflict",
    ),
    Mutant(
        "what is about to expire still counts",
        Text("is_fresh = self._renew_ms < left_ms <= self._validity_ms", "is_fresh = left_ms > 0"),
        f"{_STORAGE_LOCK}::test_what_is_about_to_expire_is_renewed_before_it_counts",
        "another engine takes the lock while a commit is put",
    ),
    Mutant(
        "a renewal that was not answered counts",
        Text("self._mine = self._mine or replace(new, valid_until_ms=0)", "self._mine = new"),
        f"{_STORAGE_LOCK}::test_a_renewal_that_may_have_failed_does_not_count",
        "a writer commits with a lock that another engine has",
    ),
    Mutant(
        "the lock of another writer is renewed",
        Text("if found is None or found.owner != self._owner:", "if found is None:"),
        f"{_STORAGE_LOCK}::test_two_never_hold_it_whatever_happens_between_two_requests[False-None]",
        "two writers hold the lock",
    ),
    Mutant(
        "a lock whose answer was lost is another writer's",
        Text("if found is None or found.owner != self._owner:", "if True:"),
        f"{_STORAGE_LOCK}"
        "::test_two_never_hold_it_whatever_happens_between_two_requests[False-lost answer]",
        "a writer gives up a lock that it has, and waits for itself",
    ),
    Mutant(
        "clocks agree",
        within("StorageLock._is_valid", _DRIFT_MS=0),
        f"{_STORAGE_LOCK}::test_clocks_of_writers_may_differ_by_half_a_second",
        "a lock is taken from a living writer whose clock is late",
    ),
    Mutant(
        "a lock is not renewed",
        skipped("StorageLock._keep_renewing"),
        f"{_STORAGE_LOCK}::test_a_thread_renews_the_lock_until_it_is_released",
        "a commit that takes longer than the lock loses it",
    ),
    Mutant(
        "a server may ignore the condition of a replace",
        skipped("check_versions_obeyed"),
        f"{_STORAGE_LOCK}::test_a_server_that_ignores_the_condition_is_refused",
        "two writers hold the lock, and nobody is told",
    ),
    Mutant(
        "a replace on S3 has no condition",
        Text('"Body": data, "IfMatch": version}', '"Body": data}'),
        "tests/contract/storage/test_versions.py"
        "::test_a_file_is_replaced_while_it_has_the_version_that_was_read[s3]",
        "two writers hold the lock",
    ),
    Mutant(
        "the lock by a file counts on object stores",
        always("Concurrency.is_common", True),
        "tests/unit/config/test_concurrency.py"
        "::test_hudis_lock_on_object_stores_is_the_one_for_several_engines_there",
        "Hudi's file lock excludes nobody there",
    ),
]
LOCKS_AND_TURNS = [
    Mutant(
        "a batch that waits for further ones is not logged",
        instead(
            "Exclusion.append",
            lambda append, exclusion, outcome, *given: (
                outcome.name == "KEEP_OPEN" or append(exclusion, outcome, *given)
            ),
        ),
        f"{LATE}::test_a_batch_rolled_back_by_another_driver_was_reported_as_written",
        "P3: Spark moves past a batch that was rolled back",
    ),
    Mutant(
        "a batch is committed that waits in another instant",
        within("commit._try_to_commit", check_held_by_no_other=nothing),
        f"{LATE}::test_a_driver_with_another_number_of_batches_lost_written_ones",
        "P2: the batches that wait with it are doubled, or lost",
    ),
    Mutant(
        "two instants with the same batch are both completed",
        within("is_superseded", max=lambda found: found[0]),
        f"{LATE}::test_of_two_instants_with_the_same_batch_recovery_keeps_one",
        "P2: a batch's rows are there twice",
    ),
    Mutant(
        "a task opens an instant that was archived",
        within("_not_past", _later=lambda batch, time: time),
        f"{LATE}::test_a_late_task_opened_an_archived_instant_again",
        "P3: the committed rows of the instant are hidden",
    ),
    Mutant(
        "an archived instant is rolled back as any other",
        always("was_committed", False),
        f"{LATE}::test_a_rollback_of_an_archived_instant_hid_its_rows",
        "P3: the committed rows of the instant are hidden",
    ),
    Mutant(
        "a task takes the time of a rollback",
        within("open_instant._is_anothers", steps_at=returns([])),
        f"{LATE}::test_a_task_took_the_time_of_a_rollback",
        "P5: two actions share a time",
    ),
    Mutant(
        "writers that undo one another are not told of the concurrency mode",
        instead(
            "Concurrency.remedy",
            lambda remedy, concurrency: remedy(Changed(concurrency, is_shared=True)),
        ),
        f"{OVERTAKEN}::test_a_write_rolled_back_by_another_names_the_concurrency_mode",
        "two streams kill one another, and nothing says what they need",
    ),
    Mutant(
        "a storage error is told where the instant was rolled back",
        within("translate_rollback_errors", owner_of=returns(ANY)),
        f"{OVERTAKEN}::test_a_storage_error_is_raised_unchanged_unless_the_instant_was_rolled_back",
        "a user reads 'no such file' where another writer is the reason",
    ),
    Mutant(
        "a conflict is never tried again",
        instead("retry_after_conflicts", lambda again, options, write: write()),
        f"{OVERTAKEN}::test_a_conflict_failed_despite_the_retry_option",
        "writers die of their first conflict",
    ),
    Mutant(
        "a batch that lost a conflict keeps its instant alive",
        skipped("Coordinator.abort"),
        f"{OVERTAKEN}::test_a_conflict_failed_despite_the_retry_option",
        "what was given up looks like a living writer's for ten minutes",
    ),
    Mutant(
        "a folder that is filled while it is deleted is an error",
        within("_delete_folder", errno=SimpleNamespace(ENOTEMPTY=None, EEXIST=None)),
        f"{OVERTAKEN}::test_a_folder_that_is_filled_while_it_is_deleted_was_an_error",
        "a writer dies of 'Directory not empty' beside another one",
    ),
    Mutant(
        "a writer is dead as soon as nobody looks",
        within("recover_lazily", ages_ms=returns({})),
        f"{WRITERS}::test_only_dead_writers_are_rolled_back",
        "P9: a live writer is rolled back (Hudi #10593)",
    ),
    Mutant(
        "a dead writer lives for ever",
        instead(
            "recover_lazily",
            lambda recover, table, clock, timeout_ms, *given: recover(
                table, clock, timeout_ms * 1000, *given
            ),
        ),
        f"{WRITERS}::test_only_dead_writers_are_rolled_back",
        "P11: what a dead writer left is never undone",
    ),
    Mutant(
        "a decision is put over another's",
        instead("put_decisively", overwriting),
        f"{WRITERS}::test_a_writer_that_stood_still_longer_than_its_lock",
        "P3: a writer that lost its lock commits all the same",
    ),
    Mutant(
        "a commit is not logged",
        within("Exclusion._append", append_decision=returns(True)),
        "tests/integration/test_several_writers.py::test_a_writer_that_stood_still_longer_than_its_lock",
        "P3: safety hangs on a lock alone, and its lease ends",
    ),
    Mutant(
        "a rollback is not logged",
        within("resolve_instant", append_decision=returns(True)),
        "tests/faults/test_promises.py::test_a_writer_rolled_back_just_before_its_decision",
        "P3: a commit is rolled back while it is completed",
    ),
    Mutant(
        "the decision log of a release before is not read",
        Text("    return _numbered(storage, FORMER_DECISIONS) | paths\n", "    return paths\n"),
        f"{_FORMER_LOG}::test_a_commit_that_the_former_log_decided_is_completed",
        "P3: a decided commit is not completed, and its number is given again",
    ),
    Mutant(
        "a decision log of a release before stays for ever",
        Text("_logged(storage, at_least=_KEPT + 1)", "_logged(storage, at_least=1)"),
        f"{_FORMER_LOG}::test_a_former_log_is_deleted_and_no_longer_listed_after_many_decisions",
        "what a release before left is never deleted",
    ),
    Mutant(
        "writers go on while a table is on its way to another version",
        within("apply_pending", _refuse_halfway=nothing),
        f"{_UPGRADE}::test_nobody_writes_during_the_change",
        "P3: a commit comes on a timeline that is left behind",
    ),
    Mutant(
        "the properties change before the timeline is where they say",
        within("_carry_out", _put_timeline=nothing),
        f"{_UPGRADE}::test_the_timeline_has_hudis_names_and_bytes",
        "P2: a table of another version has lost its rows",
    ),
    Mutant(
        "an upgrade takes every payload for a standard one",
        within("_as_hudi_takes_them", PAYLOAD_MODES=SimpleNamespace(get=nothing)),
        f"{_UPGRADE}::test_a_payload_that_is_not_standard_stays",
        "P14: rows are merged by another rule than their payload's",
    ),
    Mutant(
        "an upgrade gives savepoints another order",
        within("check_savepoints", is_ordered_anew=returns(False)),
        f"{_UPGRADE}::test_savepoints_that_another_order_would_change_are_refused",
        "P3: a savepoint has other rows than when it was made",
    ),
    Mutant(
        "what is known of live files is kept when commits have other ends",
        instead("_is_same", lambda _, instant, found: found is not None),
        "tests/golden/test_version_changes.py::test_rows_stay_what_hudi_answers",
        "P2: replaced file groups are back in a table that changed its layout twice",
    ),
    Mutant(
        "what was decided is left to whoever decided it",
        within("apply_pending", _apply=nothing),
        "tests/integration/test_several_writers.py::test_a_commit_that_was_decided_is_carried_out_by_others",
        "P3: a decided commit is rolled back",
    ),
    Mutant(
        "keys are not compared",
        within("commit._try_to_commit", check_new_keys=nothing),
        "tests/integration/test_several_writers.py::test_one_new_key_in_two_file_groups_is_a_conflict",
        "P8: one new key in two file groups",
    ),
    Mutant(
        "the timeline is not loaded again under the lock",
        instead("Exclusion.apply_pending", knowing_no_other),
        f"{WRITERS}::test_a_commit_of_another_engine_while_the_lock_is_waited_for_is_a_conflict",
        "P3: an update in between is lost",
    ),
    Mutant(
        "a single writer does not look for hearts that beat",
        within("recover", _refuse_living=nothing),
        f"{WRITERS}::test_a_single_writer_does_not_undo_a_living_one_of_several",
        "P9: a live writer is rolled back",
    ),
    Mutant(
        "a manifest is completed although others decided since",
        within("_completing", str=returns(ANY)),
        f"{WRITERS}::test_a_manifest_whose_batch_was_committed_since_is_not_completed",
        "P2: a batch of an old driver comes twice",
    ),
    Mutant(
        "a decision forgets what the one before it carried",
        instead("next_decision", lambda following, *given: replace(following(*given), carried={})),
        "tests/unit/sink/replay/test_replay.py::test_without_our_commits_on_the_timeline_batches_are_still_known",
        "P2: a batch comes twice where others archive",
    ),
    Mutant(
        "a late task leaves its files",
        within("no_late_files", _delete=nothing),
        "tests/faults/test_promises.py::test_a_late_file_of_the_first_instant_is_invisible",
        "P16: readers that list folders see rows that were rolled back",
    ),
    Mutant(
        "a rolled-back time before the first commit counts as archived",
        within("status_of", is_undone=returns(False)),
        "tests/faults/test_promises.py::test_a_late_file_of_the_first_instant_is_invisible",
        "P16: rows that were rolled back are read",
    ),
    Mutant(
        "the active timeline starts at a commit that a savepoint keeps",
        instead("Timeline.start", lambda start, timeline: start(Changed(timeline, savepoints=()))),
        "tests/property/test_foreign_timelines.py::test_what_is_committed_on_a_foreign_timeline",
        "P13: rows that others committed vanish, and older ones become the newest",
    ),
    Mutant(
        "the schema of a compaction is the table's",
        within(
            "_declared_by_commit",
            file_changes=Around(lambda read, *given: Changed(read(*given), is_rewrite=False)),
        ),
        "tests/faults/regressions/test_rewrites_of_others.py"
        "::test_a_rewrite_with_an_older_schema_hid_a_column",
        "P12: a column is gone for readers, and its values with the next rewrite",
    ),
    Mutant(
        "columns that have numbers are read by name",
        skipped("ColumnHistory.renaming"),
        "tests/integration/test_schema_on_read.py::test_columns_are_found_by_number",
        "P12: a renamed column is null",
    ),
    Mutant(
        "columns that have numbers are written without",
        Text("    if batch.plan.numbered:\n", "    if False:\n"),
        "tests/integration/test_numbered_columns.py::test_every_write_keeps_the_numbers",
        "P12: Hudi looks columns up by numbers that new files do not have",
    ),
    Mutant(
        "a column that is called as Hudi's key is taken for numbers of columns",
        Text("if LATEST_SCHEMA_KEY not in extra:", "if False:"),
        "tests/integration/test_numbered_columns.py"
        "::test_a_column_of_the_name_of_hudis_key_has_no_number",
        "no process can complete a commit of the table",
    ),
    Mutant(
        "a commit with numbers has no history",
        skipped("put_history"),
        "tests/integration/test_numbered_columns.py::test_every_write_keeps_the_numbers",
        "P12: Hudi finds no history once the commits are archived that have one",
    ),
    Mutant(
        "a history has the columns of writes that failed",
        Text(
            "known = _read(storage, counted) if",
            "known = _read(storage, _history_files(storage)) if",
        ),
        "tests/integration/test_numbered_columns.py::test_a_history_of_a_write_that_failed_goes",
        "P12: once archived, it says that files have names that none has",
    ),
    Mutant(
        "histories stay for ever",
        Text(
            "        if time not in kept and timeline.commit_at(time) is None", "        if False"
        ),
        "tests/integration/test_numbered_columns.py"
        "::test_the_history_outlives_the_archived_commits",
        "P29: a folder grows with each commit",
    ),
    Mutant(
        "rows of before are merged by the names of now",
        Text("            context.history.renaming(base.name.instant_time),\n", ""),
        "tests/integration/test_numbered_columns.py::test_every_write_keeps_the_numbers",
        "P12: an upsert takes the values of all rows of its files away",
    ),
    Mutant(
        "small files are copied by the names of now",
        Text("renaming=renaming(base.name.instant_time),", ""),
        "tests/integration/test_numbered_columns.py::test_small_files_are_filled_by_the_numbers",
        "P12: an insert takes the values of all rows of a file away",
    ),
    Mutant(
        "a plan is carried out with the names of now",
        Text("    timeline = planned_columns(table, timeline, time)\n", ""),
        "tests/integration/test_numbered_columns.py"
        "::test_a_compaction_writes_the_names_of_its_plan",
        "P12: a compacted file has names that it is not looked up by",
    ),
    Mutant(
        "a new column has the number of one that was dropped",
        Text('count(numbered["max_column_id"] + 1)', 'count(numbered["max_column_id"])'),
        "tests/integration/test_numbered_columns.py::test_a_new_column_has_a_number_that_none_had",
        "P12: a column that was dropped comes back with another of its name",
    ),
    Mutant(
        "columns that a batch adds have the version of before",
        Text('{**json.loads(numbered), "version_id": int(time)}', "json.loads(numbered)"),
        "tests/integration/test_numbered_columns.py::test_a_new_column_has_a_number_that_none_had",
        "P12: files of before are taken to have the new column",
    ),
    Mutant(
        "columns are altered under files of later times",
        Text(
            "    if later:\n        raise _conflict(plan, later[0]",
            "    if False:\n        raise _conflict(plan, later[0]",
        ),
        "tests/integration/test_alter.py::test_what_is_later_than_an_alteration_is_a_conflict",
        "P12: a file with the former names is read by the new ones",
    ),
    Mutant(
        "columns are renamed beside statistics by their names",
        skipped("check_named"),
        "tests/integration/test_alter.py"
        "::test_statistics_by_names_are_not_beside_files_of_other_names",
        "P12: Hudi skips files that have the column under its former name",
    ),
    Mutant(
        "an alteration under a taken number is not compared with the one that took it",
        Text("change = batch.plan.change or batch.plan.columns", "change = batch.plan.change"),
        "tests/integration/test_alter.py::test_a_numbered_alteration_is_made_once",
        "P1: other changes are answered as committed",
    ),
    Mutant(
        "columns are renamed under a Delta log",
        Text("if plan.options.catalog.delta_sync:", "if False:"),
        "tests/integration/test_alter.py::test_a_delta_log_has_no_columns_under_other_names",
        "P12: Delta's readers find nulls, or rows of before",
    ),
    Mutant(
        "a field of a struct takes what is said of one whose name it gets",
        skipped("_Merger.find_names"),
        "tests/unit/table/test_alteration.py::test_fields_of_structs_keep_what_is_said_of_them",
        "P12: a column that was null before is required",
    ),
    Mutant(
        "a VARIANT is numbered as a struct",
        instead("_logical_types", lambda *_: iter(())),
        "tests/unit/table/test_alteration.py::test_a_variant_is_one_value_in_each_column",
        "P12: Hudi's next write makes a struct of it",
    ),
    Mutant(
        "the first commit with numbers forgets the columns of before",
        Text('json.loads(extra.get(FIRST_KEY, "[]"))', "[]"),
        "tests/integration/test_alter.py::test_rows_have_the_columns_of_now",
        "P12: a renamed column is null",
    ),
    Mutant(
        "a table that was altered meanwhile is written to",
        Text(
            "if column_history(plan.table, timeline).version != plan.history.version:",
            "if False:",
        ),
        "tests/integration/test_numbered_columns.py::test_a_table_altered_meanwhile_is_a_conflict",
        "P12: a write takes the new names back",
    ),
    Mutant(
        "a commit without numbers ends the history of the columns",
        skipped("check_history"),
        "tests/integration/test_schema_on_read.py::test_a_job_without_the_option_ends_no_refusal",
        "P23: a renamed column is null, and a rewrite of its file loses its values",
    ),
    Mutant(
        "only the newest names of columns count",
        within("schema_on_read._read", max=min),
        "tests/unit/table/test_schema_on_read.py::test_a_file_has_the_names_of_its_time",
        "P12: a renamed column is null",
    ),
    Mutant(
        "services plan to rewrite files by names that are not known",
        within("PlannedService.schedule_by", column_history=nothing),
        "tests/integration/test_numbered_columns.py"
        "::test_a_history_that_is_lost_stops_writes_and_plans",
        "P12: a plan is left that nobody here can carry out",
    ),
    Mutant(
        "log blocks have the names of now",
        Text(
            "renaming, needed = self.history.renaming(place.time), self._needed",
            "renaming, needed = None, self._needed",
        ),
        "tests/integration/test_schema_on_read.py::test_log_blocks_have_the_names_of_their_time",
        "P12: an update of a renamed column is null",
    ),
    Mutant(
        "a column that was dropped comes back with another of its name",
        Text("is_same = is_same and name not in taken", "pass"),
        "tests/integration/test_schema_on_read.py::test_columns_are_found_by_number",
        "P12: a new column has the values of one that was dropped",
    ),
    Mutant(
        "the names of a write that failed count",
        Text(
            'if not version["version_id"] or timeline.is_committed(str(version["version_id"]))',
            "if True",
        ),
        "tests/unit/table/test_schema_on_read.py::test_names_of_a_write_that_failed_are_in_no_file",
        "P12: a column is looked for under a name that it never had",
    ),
    Mutant(
        "a footer has the names of now",
        Text("name = self._name_of(field.name)", "name = field.name"),
        "tests/integration/test_schema_on_read.py"
        "::test_what_files_say_of_old_names_rules_no_row_out",
        "P12: a filter leaves rows out by the values of another column",
    ),
    Mutant(
        "what merges came to is remembered under other names",
        Text("self.delete_marker, types, self.history.version", "self.delete_marker, types, 0"),
        "tests/integration/test_schema_on_read.py::test_a_merge_by_another_column_is_another_one",
        "P12: a process goes on with the rows that won by another column",
    ),
    Mutant(
        "logged changes have the names of their time",
        Text("if renaming is not None:\n            image", "if False:\n            image"),
        "tests/integration/test_schema_on_read.py::test_logged_changes_have_the_names_of_now",
        "P12: changes name a column that the table does not have",
    ),
    Mutant(
        "keys are made of columns by their names of now",
        always("ColumnHistory.keeps", True),
        "tests/integration/test_schema_on_read.py"
        "::test_keys_are_not_those_of_a_column_that_took_their_name",
        "P12: a filter leaves rows out by the values of another column",
    ),
    Mutant(
        "the past has the names of now",
        within("PinnedTable.at", column_history=returns(ALL_AS_NOW)),
        "tests/integration/test_schema_on_read.py::test_a_past_between_two_names_has_its_own",
        "P12: a column is null in a time travel query",
    ),
    Mutant(
        "files beside missing properties are damage at first sight",
        Text(
            "        properties = _read_properties(storage)\n        if properties is None:\n",
            "        if properties is None:\n",
        ),
        "tests/faults/regressions/test_creation_races.py"
        "::test_a_slower_creator_got_an_error_of_a_damaged_table",
        "P14: a writer is advised to remove the table that another one has just created",
    ),
    Mutant(
        "a batch is written by what Arrow knows of the schema",
        within("Coordinator._plan", declared_avro=returns(None)),
        "tests/integration/test_kept_schema.py"
        "::test_a_write_that_does_not_change_the_schema_says_the_same",
        "P12: Hudi's VECTOR is plain bytes, and Hudi refuses its own rows",
    ),
    Mutant(
        "a commit says what Arrow knows of the schema",
        within("commit._checked_record", avro_schema=of_arrow),
        "tests/integration/test_kept_schema.py"
        "::test_a_write_that_does_not_change_the_schema_says_the_same",
        "P12: Hudi's VECTOR is plain bytes, and Hudi refuses its own rows",
    ),
    Mutant(
        "rewritten files have what Arrow knows of the schema",
        within("rewrite_context", avro_schema=of_arrow),
        "tests/integration/test_kept_schema.py"
        "::test_a_write_that_does_not_change_the_schema_says_the_same",
        "P12: Hudi's Avro readers meet types that the table does not have",
    ),
    Mutant(
        "a rewrite says what Arrow knows of the schema",
        within("PlannedService._put_manifest", avro_schema=of_arrow),
        "tests/integration/test_kept_schema.py"
        "::test_a_write_that_does_not_change_the_schema_says_the_same",
        "P12: once the writes are archived, a compaction says the schema",
    ),
    Mutant(
        "a vector's null element is stored as whatever its place holds",
        Text("if vectors.flatten().null_count:", "if False:"),
        f"{_VECTORS}::test_what_is_no_vector_is_refused[a null]",
        "P12: a number that nobody wrote",
    ),
    Mutant(
        "vectors of any length are cut into the table's",
        Text("pc.equal(array.value_lengths(), target.list_size)", "pc.is_valid(array)"),
        f"{_VECTORS}::test_what_is_no_vector_is_refused[wide]",
        "P12: elements of one row are in another's vector",
    ),
    Mutant(
        "a null among lists moves the vectors behind it",
        Text("vectors.take(pc.if_else(valid, positions, None))", "vectors"),
        f"{_VECTORS}::test_every_write_and_read_has_the_lists",
        "P12: a row has the vector of another",
    ),
    Mutant(
        "vectors of a part of a column begin at its whole",
        Text("[validity], offset=stored.offset, children", "[validity], children"),
        f"{_VECTORS}::test_parts_of_columns_are_converted",
        "P12: a row has the vector of another",
    ),
    Mutant(
        "a shredded VARIANT is read without its values",
        always("is_shredded", False),
        f"{_VECTORS}::test_a_shredded_variant_is_refused_rather_than_read_without_its_values",
        "P12: values are null that are in the file, and an upsert loses them",
    ),
    Mutant(
        "Spark reads files of a shredded VARIANT itself",
        within("native_files._reads", is_shredded=returns(False)),
        f"{_VECTORS}::test_a_shredded_variant_is_refused_rather_than_read_without_its_values",
        "P12: values are null that are in the file",
    ),
    Mutant(
        "vectors have statistics",
        Text("without) and node.logical != VECTOR", "without)"),
        f"{_VECTORS}::test_vectors_have_no_statistics",
        "P12: Hudi's metadata table has an index that Hudi refuses",
    ),
    Mutant(
        "files that are loaded have vectors in the table's type",
        Text("pa.schema(map(_plain, fields))", "pa.schema(list(fields))"),
        "tests/unit/cli/test_creation.py::test_vectors_come_as_lists_of_json",
        "a table with vectors takes no JSON",
    ),
    Mutant(
        "files do not name their vectors",
        instead("vector_names", lambda _, schema: ""),
        f"{_VECTORS}::test_files_have_the_bytes_of_hudi",
        "P12: files that Hudi would not have written",
    ),
    Mutant(
        "a column that widens takes what was said of it away",
        Text('return {**said, "name": field.name', 'return {"name": field.name'),
        "tests/integration/test_kept_schema.py::test_other_columns_stay_as_they_were_said",
        "P12: defaults and documentation are gone",
    ),
    Mutant(
        "base files take symbols that an enum does not have",
        skipped("_check_symbols"),
        "tests/integration/test_kept_schema.py::test_what_the_schema_has_no_value_for_is_refused",
        "P13: Hudi cannot write the row into a log again",
    ),
    Mutant(
        "Parquet has fixed columns of any width",
        Text("return pa.binary(node.size)", "return kind"),
        "tests/unit/formats/parquet/test_avro_types.py::test_parquet_types_are_those_that_hudi_asks_for",
        "P13: Hudi's Avro readers refuse the file",
    ),
    Mutant(
        "nulls in required columns are written",
        Text("pc.any(pc.and_(child.is_null(), valid)).as_py()", "False"),
        "tests/integration/test_kept_schema.py::test_what_the_schema_has_no_value_for_is_refused",
        "P13: a null is read as whatever lies in its place",
    ),
    Mutant(
        "a commit says the schema that its batch began with",
        within("commit._checked_record", merged_schema=lambda batch, *_: batch.schema),
        "tests/faults/regressions/test_schema_races.py"
        "::test_a_later_commit_without_a_new_column_took_it_away",
        "P12: a column that another writer added is gone, and its values with the next rewrite",
    ),
    Mutant(
        "an instant that is not the newest adds a column",
        within("merged_schema", padded=returns(0)),
        "tests/faults/regressions/test_schema_races.py"
        "::test_a_column_added_by_an_earlier_instant_that_commits_later",
        "P12: a column that was committed is not in the table",
    ),
    Mutant(
        "plans of others' services are not looked at",
        within("check_groups", _check_services=nothing),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_plan_made_meanwhile_left_the_rows_of_a_batch_out",
        "P10: rows are gone once a compaction completes that was planned without them",
    ),
    Mutant(
        "a manifest is completed over what another engine committed since",
        within("_completing", _is_overtaken=returns(False)),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_manifest_is_not_completed_over_a_clustering_that_came_since",
        "P10: rows come back that a clustering has written anew",
    ),
    Mutant(
        "a decided write is completed over what another engine committed since",
        within("_revised", _is_overtaken=returns(False)),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_write_that_was_decided_is_completed_unless_another_engine_has_overtaken_it",
        "P10: rows that another engine wrote are gone",
    ),
    Mutant(
        "a write of another engine that was pending cannot overtake one of later time",
        instead(
            "_is_overtaken",
            lambda is_, table, timeline, own, commit, *seen: is_(
                table, timeline, own, replace(commit, extra={}), *seen
            ),
        ),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_write_that_was_decided_is_completed_unless_another_engine_has_overtaken_it",
        "P10: rows that another engine wrote are gone",
    ),
    Mutant(
        "what a decided write was compared with overtakes it",
        instead("_is_overtaken", lambda is_, *given: is_(*given[:4])),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_write_that_was_decided_is_completed_unless_another_engine_has_overtaken_it",
        "P3: a batch that is committed by the decision log is rolled back",
    ),
    Mutant(
        "the batches of a write that was overtaken stay in the decision log",
        instead("carried_as_outdated", lambda _, entries, instant: dict(entries)),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_the_batch_of_a_write_that_was_overtaken_is_written_again",
        "P3: a batch that is not in the table is never written",
    ),
    Mutant(
        "a restore that is pending hinders nobody",
        skipped("refuse_restore"),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_writes_continued_during_a_pending_restore",
        "P10: rows that a restore takes back, or part of them",
    ),
    Mutant(
        "what a batch was made from may have been taken back",
        within("check_based", counts=returns(True)),
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_batch_is_not_committed_after_a_rollback_of_what_it_read",
        "P10: rows that were rolled back come again with a rewrite",
    ),
    Mutant(
        "a batch opens its instant without another look at the properties",
        within("open_instant", check_unchanged=nothing),
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_a_commit_was_put_on_the_old_timeline",
        "P1: files, and an instant, in a folder where nobody looks",
    ),
    Mutant(
        "a batch that a version change has completed is refused",
        always("_is_in_changed_table", False),
        "tests/faults/test_late_version_changes.py"
        "::test_a_writer_says_whether_a_version_change_has_completed_its_batch[6-8]",
        "P2: rows are there twice, as the error says to run the batch again",
    ),
    Mutant(
        "a batch that a version change under way has completed is refused",
        within("commit._is_in_changed_table", newest_decision=returns(None)),
        "tests/faults/test_late_version_changes.py"
        "::test_a_writer_finds_its_batch_in_a_table_that_is_being_changed[6-8]",
        "P2: rows are there twice, as the batch is run again",
    ),
    Mutant(
        "a damaged archive of a changed table is not asked for a batch",
        within("_is_in_changed_table", _is_archived=returns(False)),
        "tests/faults/test_late_version_changes.py"
        "::test_a_writer_does_not_know_if_the_archive_of_a_changed_table_is_damaged",
        "P2: the error does not say that the batch may be in the table",
    ),
    Mutant(
        "what cannot be known of a batch after a version change is called a refusal",
        within("commit._is_in_changed_table", HoodieError=RecursionError),
        "tests/faults/test_late_version_changes.py"
        "::test_a_writer_does_not_know_if_the_archive_of_a_changed_table_is_damaged",
        "P2: rows are there twice, as the error says to run the batch again",
    ),
    Mutant(
        "a batch is committed to a table that was upgraded while it waited for the lock",
        within("commit._try_to_commit", check_table_unchanged=nothing),
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_an_upgrade_while_the_lock_is_waited_for_is_seen",
        "P1: a commit that was reported and is in no table",
    ),
    Mutant(
        "an upgrade is taken for a rollback by another writer",
        within("instant_checks._ended", check_table_unchanged=nothing),
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_an_upgrade_while_staged_rows_are_merged_is_seen",
        "P1: files are left in a table of another version, and the advice does not help",
    ),
    Mutant(
        "files of a commit that an upgrade took along are taken back",
        within(
            "instant_checks._delete_instant",
            load_timeline=Around(lambda load, *at: Changed(load(*at), commit_at=nothing)),
        ),
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_files_of_a_commit_that_the_upgrade_has_not_reached_stay",
        "P13: a commit is gone",
    ),
    Mutant(
        "a manifest counts without a decision",
        within("_finish_or_undo", _is_of_several=returns(False)),
        f"{WRITERS}::test_a_manifest_whose_keys_were_not_compared_commits_nothing",
        "P3: an update that nobody checked for conflicts",
    ),
    Mutant(
        "roll-back throws the markers of late files away",
        within("remove_from_timeline", delete_leftovers=nothing),
        "tests/faults/regressions/test_regressions.py::test_two_processes_may_meet",
        "P11: a file that no rollback finds",
    ),
]
"""Of several writers: locks, heartbeats, decisions."""

_ADDED = "tests/integration/test_added_columns.py"
_COPIES = "test_copies_that_become_one_keep_what_the_newest_has"
_BY_HAND = "tests/unit/services/test_rollback.py"
_RESTORE = "tests/unit/services/test_restore.py"
UNDOING = [
    Mutant(
        "a split of buckets is rolled back below the rows that were written on top of it",
        skipped("_check_unused"),
        "tests/golden/test_split_buckets.py::test_a_split_that_rows_were_written_on_top_of_stays",
        "P1: committed log files are deleted, and nobody can read the table",
    ),
    Mutant(
        "a clustering that another engine planned for buckets is carried out",
        always("obstacle_to", None),
        "tests/integration/test_clustering.py::test_buckets_are_left_as_they_are",
        "P1: rows are in file groups of no bucket, and their keys are stored twice",
    ),
    Mutant(
        "a compaction leaves out a file group that was replaced after its plan",
        Text(
            "CompactionResult() if slice_ is None else self._merged(slice_)", "CompactionResult()"
        ),
        "tests/integration/test_pending_compactions.py::"
        "test_a_group_that_was_replaced_after_its_plan_comes_back_whole[overwrite-rollback-6]",
        "P1: rows are lost where the replace commit is rolled back, or looked behind",
    ),
    Mutant(
        "a service that others helped to complete looks for a requested file of its other action",
        Text("_is_gone(storage, decision.instant)", "_is_gone(storage, instant)"),
        f"{_BY_HAND}::test_who_completes_an_instant_late_leaves_what_others_completed[cluster-9]",
        "P1: a clustering loses its completed file, and nobody can read the table",
    ),
    Mutant(
        "nobody is told of a column that a batch adds",
        within("Coordinator._plan", warn_of_new_columns=nothing),
        "tests/unit/api/test_hoodie_table.py::test_a_column_that_a_batch_adds_is_named_once[kept]",
        "a misspelt column is there for ever, and nobody knows since when",
    ),
    Mutant(
        "a row without an added column takes its stored value away",
        within("KeyedWriter._with_kept", with_kept_values=lambda _, rows, __: rows),
        f"{_ADDED}::test_rows_keep_what_is_stored[MERGE_ON_READ-buckets-9]",
        "P12: the values are lost with a batch that says nothing of them",
    ),
    Mutant(
        "a record that moves leaves an added column behind",
        within(
            "GlobalLocations._kept",
            kept_values=Around(lambda values, plan, _, keys: values(plan, None, keys)),
        ),
        f"{_ADDED}::test_marks_of_deletes_do_not_stay[COPY_ON_WRITE-whole]",
        "P12: the values are lost with the partition",
    ),
    Mutant(
        "of several copies of a key the first one's values are kept",
        within("with_kept_values", Merger=lambda _: Changed(None, combine=lambda copies: copies)),
        f"{_ADDED}::{_COPIES}[COPY_ON_WRITE-buckets-6]",
        "P12: an older value takes the place of a newer one",
    ),
    Mutant(
        "copies of one time are as old as one another, whichever commit wrote them",
        within("with_kept_values", COMMIT_TIME="_hoodie_record_key"),
        f"{_ADDED}::{_COPIES}[COPY_ON_WRITE-commit order-6]",
        "P12: an older value takes the place of a newer one",
    ),
    Mutant(
        "a copy that stays where others move to keeps its own values",
        instead(
            "KeyedWriter._with_kept",
            lambda kept, writer, rows, target, moved: kept(
                writer, rows, target, None if target.latest else moved
            ),
        ),
        f"{_ADDED}::{_COPIES}[COPY_ON_WRITE-global-9]",
        "P12: an older value takes the place of a newer one",
    ),
    Mutant(
        "a record that moves takes the values of a copy that does not",
        Text("moved[stored == number]", "moved[stored >= 0]"),
        f"{_ADDED}::test_a_copy_that_does_not_move_keeps_its_values_to_itself[COPY_ON_WRITE]",
        "P12: values of one record are stored with another",
    ),
    Mutant(
        "a row of its own takes over stored values",
        instead("WritePlan.meets_stored_rows", lambda *_: True),
        f"{_ADDED}::test_an_insert_adds_a_row_with_nulls[COPY_ON_WRITE-BUCKET]",
        "an insert says what its row did not",
    ),
    Mutant(
        "a row takes over the mark of deletes that is stored",
        Text("- {*batch.names, IS_DELETED}", "- {*batch.names}"),
        f"{_ADDED}::test_marks_of_deletes_do_not_stay[COPY_ON_WRITE-whole]",
        "P1: a record that moves is there twice",
    ),
    Mutant(
        "a commit forgets which columns batches before it added",
        within("added_with", added_columns=returns(frozenset())),
        f"{_ADDED}::test_it_is_known_for_as_long_as_the_column_is_there[COPY_ON_WRITE-6]",
        "P23: a stream fails for ever when its source is as it was before",
    ),
    Mutant(
        "a commit of another engine hides which columns batches added",
        Text(
            "if commit.is_ours and not commit.is_rewrite:\n            return",
            "if True:\n            return",
        ),
        f"{_ADDED}::test_it_is_known_behind_commits_of_other_engines",
        "P23: a stream fails for ever when its source is as it was before",
    ),
    Mutant(
        "a copy of a key in another partition passes for the same row",
        Text('what = "updated" if partition in there', 'what = "updated" if there'),
        "tests/unit/cli/test_views.py::test_copies_of_a_key_in_two_partitions_are_distinguished",
        "an operator is told of an update that was an insert",
    ),
    Mutant(
        "a refused option shows a password",
        within("secret_values.shown", _is_secret=returns(False)),
        "tests/unit/config/test_known_options.py::test_only_secrets_are_hidden"
        "[hoodie.fs.s3a.acess.key-hush-False]",
        "a password is in the log",
    ),
    Mutant(
        "an instant that is lost passes for one of a dead writer",
        within("pending_rows", lost_by_time=returns({})),
        "tests/unit/inspection/test_verify.py::test_a_completed_instant_that_is_lost[1-9]",
        "P1: an operator is told to roll back what was committed",
    ),
    Mutant(
        "the next batch does not see that a commit is decided to go",
        within("roll_back_by_hand", claim=nothing),
        "tests/faults/test_services.py"
        "::test_the_process_may_end_at_some_operations[rollback, cow-9]",
        "a batch is refused by a rollback that was killed before it began",
    ),
    Mutant(
        "a rollback without an instant takes the newest good commit beside a dead write",
        skipped("rollback._refuse_choice"),
        "tests/unit/cli/test_changes.py::test_a_rollback_with_a_dead_write_pending_asks_which",
        "P1: rows of a commit that nobody meant are gone",
    ),
    Mutant(
        "a rollback by hand that was killed goes by markers, which are gone",
        always("_was_decided", False),
        f"{_BY_HAND}::test_a_rollback_that_was_killed_is_finished_by_the_next_write"
        "[alone-*.rollback.inflight-COPY_ON_WRITE]",
        "P11: a rollback that nobody can finish",
    ),
    Mutant(
        "what is put late, after it was undone, stays",
        always("drop_resurrected", False),
        f"{_BY_HAND}::test_a_completed_file_put_late_is_deleted_by_one_of_several_writers_too",
        "P3: rows that were undone count again, and their files are gone",
    ),
    Mutant(
        "the decision to undo a batch carries nothing on",
        always("carried_without", {}),
        f"{KNOWN_WRITERS}::test_archived_batches_were_forgotten_where_only_a_rewrite_was_left",
        "P2: archived batches are written again",
    ),
    Mutant(
        "a commit that a savepoint keeps is undone",
        always("check_no_savepoint", None),
        f"{_BY_HAND}::test_a_commit_with_a_savepoint_stays",
        "a savepoint of a commit that is gone",
    ),
    Mutant(
        "nobody asks whether cleans have left what a restore goes back to",
        always("check_files_are_kept", None),
        f"{_RESTORE}::test_files_that_a_clean_took_are_in_the_way",
        "P3: rows of the target are lost",
    ),
    Mutant(
        "a restore leaves the files of late tasks",
        always("_delete_late_files", None),
        f"{_RESTORE}::test_a_file_that_came_late_goes_with_its_write",
        "P16: readers that list folders see rows that were taken back",
    ),
    Mutant(
        "a restore leaves pending plans and writes",
        instead(
            "later_writes",
            lambda later, *given: tuple(i for i in later(*given) if i.counts),
        ),
        f"{_RESTORE}::test_pending_writes_and_plans_go_too",
        "P3: a write is committed on what a restore has taken away",
    ),
]
"""Of savepoints, rollbacks and restores by hand."""

TEXTS = [
    Mutant(
        "the nameless index of pandas is a column",
        instead("_is_foreign", lambda is_foreign, name, _: is_foreign(name, {name})),
        f"{IN_THE_HAND}::test_the_index_of_pandas_was_stored_for_good",
        "P23: the next write is refused",
    ),
    Mutant(
        "a replay says that it wrote",
        within(
            "Coordinator._commit_nothing_written", WriteResult=Around(lambda result, **_: result())
        ),
        f"{IN_THE_HAND}::test_a_replay_is_reported_in_the_result",
        "P2: a caller takes a replay for a write",
    ),
    Mutant(
        "what is wrong with an option that is no field of its group is passed over",
        instead(
            "OptionGroup._declared",
            lambda declared, group: (
                {key: one for key, one in declared(group)[0].items() if one[0] != "doubled"},
                *declared(group)[1:],
            ),
        ),
        "tests/unit/config/test_option.py::test_a_group_notes_all_that_is_wrong",
        "P23: a malformed value is ignored",
    ),
    Mutant(
        "a setting of the session contradicts an option of the call under another name",
        within("collect", _that_count=lambda raw: raw),
        "tests/unit/config/test_known_options.py"
        "::test_settings_of_the_session_yield_to_options_of_the_call",
        "P23: a call cannot say what the session says otherwise",
    ),
    Mutant(
        "what has no effect is passed over in silence",
        skipped("warn_of_ignored"),
        f"{USUAL}::test_other_keys_are_another_warning",
        "P23: a user believes that cleaning runs",
    ),
    Mutant(
        "a typo of an option that is obeyed is taken for one of a family without effect",
        within(
            "_remedy_of_key",
            _meant=Around(
                lambda meant, key, known, least: None if least > 0.9 else meant(key, known, least)
            ),
        ),
        f"{USUAL}::test_the_outcome_of_a_usual_option",
        "P23: an option that changes rows is passed over",
    ),
    Mutant(
        "a connection that was refused is used again",
        within("connections.failed", _forget=nothing),
        f"{CONNECTIONS}::test_credentials_that_came_after_a_failed_try_were_ignored",
        "P19: right credentials are refused until the process ends",
    ),
    Mutant(
        "a secret is hidden within words",
        within("secrets._word", _LEAST_TEXT=0),
        f"{CONNECTIONS}::test_a_secret_was_cut_out_of_words_and_an_endpoint_hidden",
        "P19: messages that nobody can read",
    ),
    Mutant(
        "a single text is taken for its letters",
        instead("strings", lambda strings, name, given: strings(name, list(given))),
        f"{LISTS}::test_the_characters_of_a_string_were_taken_for_partitions",
        "P1: every partition is deleted where one was meant",
    ),
    Mutant(
        "the partitions to delete are divided at their commas",
        within("HoodieTable._write", replace=Around(dividing)),
        f"{LISTS}::test_a_partition_was_deleted_by_the_parts_of_its_name",
        "P1: other partitions than those named are deleted",
    ),
    Mutant(
        "a star stands for any text though it was said not to",
        instead(
            "commit_record._chosen",
            lambda chosen, plan: chosen(
                Changed(plan, options=Changed(plan.options, exact_partitions=False))
            ),
        ),
        f"{LISTS}::test_a_star_may_be_escaped",
        "P1: other partitions than the one named are deleted",
    ),
]
"""Of what callers hand over."""

_SPARK = "tests/faults/regressions/test_spark_errors.py"
SPARK = [
    Mutant(
        "the writer that commits begins a batch of its own",
        instead(
            "HoodieDataSource.streamWriter",
            lambda write, source, *given, **named: write(
                Changed(source, _was_pickled=False), *given, **named
            ),
        ),
        f"{_SPARK}::test_only_the_pickled_writer_begins_a_batch",
        "P1: the batch that is about to be committed is rolled back as a dead one",
    ),
    Mutant(
        "epochs of a continuous query are told of as tasks that did not report",
        within("HoodieStreamWriter.commit", all=returns(False)),
        f"{_SPARK}::test_epochs_of_a_continuous_query_were_committed_without_their_rows",
        "nobody is told what to use in place of the trigger",
    ),
    Mutant(
        "a table without file slices has no split",
        instead(
            "HoodieReader.partitions",
            lambda splits, reader: [s for s in splits(reader) if s.task is not None],
        ),
        f"{_SPARK}::test_a_table_without_file_slices_could_not_be_read",
        "a table that was emptied cannot be read",
    ),
    Mutant(
        "a declared type may hold less than the table's",
        always("declared_schema._holds", True),
        f"{_SPARK}::test_a_declared_schema_that_does_not_fit",
        "values of other rows, or an error without a name",
    ),
    Mutant(
        "a catalog table is created that no query can read",
        within("HoodieDataSource.schema", _OF_CATALOG={"no such option"}),
        f"{_SPARK}::test_a_catalog_table_was_created_that_nothing_could_read",
        "rows are written where nobody reads them",
    ),
]
"""Of the adapters to Spark, each without Spark."""

_PLANNER = "tests/unit/services/test_clean_planner.py"
_CLEANING = "tests/unit/services/test_cleaning.py"
_BESIDE_CLEANS = "tests/integration/test_cleaning.py"
CLEANS = [
    Mutant(
        "a batch is committed whose files a clean has taken",
        skipped("check_not_cleaned"),
        f"{_BESIDE_CLEANS}::test_a_batch_that_began_before_the_retention_is_refused[True-bloom-commits]",
        "P1: stored keys are inserted into new file groups, so each is there twice",
    ),
    Mutant(
        "a reader is not told that a clean took its files",
        always("live_files.taken_since", None),
        f"{_BESIDE_CLEANS}::test_a_reader_that_is_behind_the_retention_is_told_to_read_again",
        "whoever reads too late is told to restore a copy, and to roll back commits",
    ),
    Mutant(
        "a clean takes what a pending instant may look at",
        instead("clean_planner._pending_times", lambda times, timeline: iter(())),
        f"{_PLANNER}::test_a_pending_write_keeps_the_files_that_it_may_read",
        "P1: a writer that is at work loses the rows of the slices that it began with",
    ),
    Mutant(
        "a clean goes by when log files were begun",
        Text("return ended(self.storage, self.timeline, time) or _NEVER", "return time"),
        f"{_PLANNER}::test_a_log_file_that_took_long_lies_on_the_base_file_before_its_end",
        "P1: log files of a commit that took longer than a compaction are deleted",
    ),
    Mutant(
        "a clean takes the version before the oldest retained commit",
        Text("        return (*limit, *_pending", "        return (*limit[:0], *_pending"),
        f"{_PLANNER}::test_latest_commits_keep_their_files_and_those_before",
        "a reader within the retention finds its files gone",
    ),
    Mutant(
        "a clean takes the files of a savepoint",
        Text("for path in file_changes(self.storage, i).kept)", "for path in ())"),
        f"{_PLANNER}::test_a_savepoint_keeps_whole_slices_also_of_replaced_file_groups",
        "the table cannot be restored to the savepoint",
    ),
    Mutant(
        "log files alone begin a version that supersedes the one before",
        Text("        if not newest or padded(file.start) in starts:", "        if file.start:"),
        f"{_PLANNER}::test_log_files_of_a_plan_that_is_gone_belong_to_the_slice_before",
        "P1: the base file below log files is deleted",
    ),
    Mutant(
        "replaced file groups go while readers see them",
        Text("        elif replaced_at < self._limit:", "        elif replaced_at <= _NEVER:"),
        f"{_PLANNER}::test_replaced_file_groups_go_whole_once_no_reader_sees_them",
        "a reader within the retention finds its files gone",
    ),
    Mutant(
        "a plan from before a restore is executed",
        Text(
            "    if any(restore.time > instant.time for restore in timeline.restores):",
            "    if False:",
        ),
        f"{_CLEANING}::test_a_plan_from_before_a_restore_is_not_executed",
        "P1: files are deleted that are the newest again",
    ),
    Mutant(
        "a clean is carried out by a look at the table as it was before",
        always("cleaning._shows_same", True),
        f"{_CLEANING}::test_files_of_changes_during_planning_are_kept[savepoint-left0]",
        "the table cannot be restored to a savepoint that was just made",
    ),
    Mutant(
        "a clean is recorded whose files are still there",
        Text("    storage.delete_many(now)\n", ""),
        f"{_CLEANING}::test_killed_at_any_operation_a_clean_is_finished_by_the_next",
        "old files stay for ever, as later cleans do not look there again",
    ),
    Mutant(
        "what a deleted savepoint kept is never looked at again",
        Text("        if last.savepoints - set(self.savepoints):", "        if False:"),
        f"{_PLANNER}::test_all_partitions_are_listed_without_a_usable_last_clean[savepoint]",
        "old files stay for ever",
    ),
]
"""Of cleans."""

_COMPACTION = "tests/integration/test_compaction.py"
_PENDING = "tests/integration/test_pending_compactions.py"
_COMPACTOR = "tests/unit/services/compaction/test_compactor.py"
_COMPACTION_PLANNER = "tests/unit/services/compaction/test_planner.py"
COMPACTIONS = [
    Mutant(
        "log files after a plan are named after the slice before it",
        within("BucketWriter._next_log", compacting=returns({})),
        f"{_PENDING}::test_log_files_after_a_plan_are_named_after_it",
        "P3: rows that are committed beside a compaction are gone with it",
    ),
    Mutant(
        "small files are filled that a compaction is to rewrite",
        within("WriteProfile.small_files", compacting=returns({})),
        f"{_PENDING}::test_new_keys_do_not_go_into_a_small_file_that_is_planned",
        "P3: new rows are in a base file that the compaction takes the place of",
    ),
    Mutant(
        "a compaction that a batch knows of is a conflict",
        Text("if instant.time in awaited:", "if False:"),
        f"{_PENDING}::test_a_batch_goes_on_beside_a_compaction_that_it_knows_of[single]",
        "a stream fails whenever a compaction completes",
    ),
    Mutant(
        "a batch is committed on a compaction that was cancelled",
        Text(
            "if status_of(storage, timeline, instant.time) is InstantStatus.UNKNOWN:", "if False:"
        ),
        f"{_PENDING}::test_a_batch_is_not_committed_on_a_compaction_that_was_cancelled_meanwhile",
        "P3: its log files begin a slice, and hide the one before",
    ),
    Mutant(
        "a compaction is planned beside an open write",
        within("planner.holding_back", UNDONE_ACTIONS=()),
        f"{_COMPACTION_PLANNER}::test_nothing_is_planned_while_a_write_is_pending",
        "P3: its log files are of a slice that is compacted without them",
    ),
    Mutant(
        "partitions that a plan left out are forgotten",
        always("CompactionPlanner._missing_partitions", ()),
        f"{_COMPACTION_PLANNER}::test_partitions_that_a_plan_left_out_are_looked_at_again[True]",
        "log files stay and slow every read once their commits are archived",
    ),
    Mutant(
        "a compaction completes without a look at its slices",
        always("PlannedSlices.is_all", True),
        f"{_COMPACTOR}::test_what_others_committed_to_the_slice_meanwhile_is_merged_too",
        "P3: rows of another engine that did not know of the plan are gone",
    ),
    Mutant(
        "of two that merge a file group both leave a base file",
        within("CompactionExecutor.execute", _paths=returns([])),
        f"{_COMPACTOR}::test_the_first_of_two_results_of_a_file_group_counts",
        "readers that list folders find two base files of one slice",
    ),
    Mutant(
        "what comes after a compaction has ended stays",
        within("CompactionExecutor.execute", take_back_if_late=nothing),
        f"{_COMPACTOR}::test_a_result_that_comes_late_is_taken_back[completed]",
        "readers that list folders find two base files of one slice",
    ),
    Mutant(
        "a base file is not looked for before a compaction completes",
        always("result._is_written", True),
        f"{_COMPACTOR}::test_a_base_file_that_another_engine_took_away_is_made_again",
        "P3: a commit that names a file which is not there",
    ),
    Mutant(
        "a plan takes a time that a writer has opened meanwhile",
        Text("if load_timeline(pending.storage, instant.layout).has_other(instant):", "if False:"),
        "tests/unit/services/test_context.py"
        "::test_a_time_that_a_writer_takes_meanwhile_is_not_taken_twice",
        "P1: two instants of one time, of which one hides the other",
    ),
    Mutant(
        "a rewritten file keeps a bloom filter that lacks its new keys",
        Text("not merge.num_inserts and inserts is None:", "inserts is None or True:"),
        f"{_FILTERS}::test_a_rewrite_without_new_keys_keeps_the_filter",
        "P5: a look-up does not find the key, and it is stored twice",
    ),
    Mutant(
        "compacted base files have no bloom filters",
        always("has_bloom_filter", False),
        f"{_COMPACTION}::test_base_files_have_the_bloom_filters_that_an_index_needs",
        "Hudi on the JVM cannot look keys up in the table",
    ),
]
"""Of compactions, and of writes beside them."""

_LOST_COMPLETIONS = "tests/faults/regressions/test_lost_completions.py"
_SAVEPOINT_HOLES = "tests/faults/regressions/test_savepoint_holes.py"
_ARCHIVE_PLANNER = "tests/unit/services/test_archive_planner.py"
_ARCHIVING = "tests/unit/services/test_archiving.py"
_UNDONE_MARKS = "tests/unit/timeline/test_rollback_marks.py"
_LSM_WRITER = "tests/unit/timeline/archive/test_lsm_writer.py"
_LATE_FILES = "tests/unit/transaction/test_late_file_notes.py"
_BESIDE_ARCHIVES = "tests/integration/test_archived_commits.py"
ARCHIVES = [
    Mutant(
        "what is before archived commits stays on the timeline",
        always("archive_planner._before", ()),
        f"{_ARCHIVE_PLANNER}::test_nothing_before_an_archived_commit_stays",
        "P1: a compaction of Hudi loses rows of commits that it takes for pending",
    ),
    Mutant(
        "an archived rollback is forgotten",
        skipped("remember_undone"),
        f"{_ARCHIVING}::test_a_late_file_of_an_instant_whose_rollback_is_archived_does_not_count",
        "P1: rows of a batch that was rolled back are in the table",
    ),
    Mutant(
        "folded marks of undone instants are not read",
        within("rollback_marks._read", _folded=returns(frozenset())),
        f"{_UNDONE_MARKS}::test_many_marks_become_one_file_and_are_all_there",
        "P1: rows of a batch that was rolled back are in the table",
    ),
    Mutant(
        "marks of undone instants are never folded",
        skipped("fold_marks"),
        f"{_ARCHIVING}::test_marks_of_undone_instants_stay_few",
        "P22: each write that dies leaves a file for ever, and readers list them all",
    ),
    *(
        Mutant(
            f"instants leave the timeline of version {version} and are not archived",
            always(f"{archive}.put", frozenset()),
            f"{_ARCHIVING}::test_interrupted_archiving_is_resumed[{version}-COPY_ON_WRITE-False-1]",
            "nobody knows any more what became of the table",
        )
        for version, archive in ((6, "_LogArchive"), (9, "_LsmArchive"))
    ),
    Mutant(
        "a file of the archive that is gone when it is to be read is not looked for again",
        instead("each_file", leaving_out),
        "tests/unit/timeline/archive/test_each_file.py"
        "::test_no_instant_is_missed_whichever_file_is_read_when_they_are_merged"
        "[3-all instants-2]",
        "archived writes are missed while another process merges files of the archive",
    ),
    Mutant(
        "an archiver lists its file in whatever manifest comes next",
        Text(
            "        if put_manifest(storage, snapshot, (*snapshot.files, file)):",
            "        if put_manifest(storage, newest_snapshot(storage), (*snapshot.files, file)):",
        ),
        f"{_LSM_WRITER}::test_two_archivers_at_once_lose_nothing[29]",
        "instants that another one archived are in the archive no more, or twice",
    ),
    Mutant(
        "files are deleted that came since an archiver has put its manifest",
        Text(
            "            settled = snapshot.names",
            "            settled = newest_snapshot(storage).names",
        ),
        f"{_LSM_WRITER}::test_an_archiver_deletes_no_file_that_another_one_lists_afterwards",
        "instants that another one archived are in the archive no more",
    ),
    Mutant(
        "instants leave the timeline before the version names the manifest that has them",
        within("lsm_writer.put_entries", point_to_newest=nothing),
        f"{_LSM_WRITER}::test_the_version_names_what_was_put",
        "Hudi's archive lacks them until the next archiving",
    ),
    Mutant(
        "completed files are archived before those of their requests",
        Text(
            "    for state in (State.INFLIGHT, State.REQUESTED):",
            "    for state in (State.COMPLETED, State.INFLIGHT, State.REQUESTED):",
        ),
        f"{_ARCHIVING}::test_readers_see_the_same_rows_throughout_archiving",
        "P1: commits look unfinished, and the next writer rolls them back",
    ),
    Mutant(
        "the newest of the archived instants goes first",
        Text(
            "= [step for one in files for step in one]",
            "= [step for one in reversed([*files]) for step in one]",
        ),
        f"{_ARCHIVING}::test_readers_see_the_same_rows_throughout_archiving",
        "a reader sees the timeline with a hole, and no rows of what was in it",
    ),
    Mutant(
        "a replace commit is archived while its old files are there",
        always("archive_planner._hides", False),
        f"{_ARCHIVE_PLANNER}::test_replaced_files_that_are_still_there_keep_their_commit",
        "P1: rows that were overwritten are in the table again",
    ),
    Mutant(
        "commits that the replay guard is read from are archived",
        Text("            yield from (instant.time for instant, _ in found)", "            pass"),
        f"{_ARCHIVE_PLANNER}::test_commits_from_which_the_replay_guard_is_read_stay",
        "P2: a batch that comes again is written twice",
    ),
    Mutant(
        "instants later than a pending one are archived",
        Text("    if timeline.pending:\n        first", "    if timeline.restores:\n        first"),
        f"{_ARCHIVE_PLANNER}::test_a_pending_instant_stays_and_the_commit_before_it",
        "P1: the pending instant hides what is archived, or counts as committed",
    ),
    Mutant(
        "what late tasks left is archived with their commit",
        within(
            "archiving._settle",
            _without_busy=lambda table, timeline, instants, found: instants,
        ),
        f"{_ARCHIVING}::test_what_a_late_task_left_is_deleted_before_its_commit_is_archived",
        "P1: files that no commit names count once their instant is archived",
    ),
    Mutant(
        "who reads does not look into the archive",
        always("loading._find_archived", None),
        f"{_ARCHIVING}::test_a_reader_that_has_begun_continues_during_archiving",
        "a long read fails whenever the timeline is archived",
    ),
    Mutant(
        "commits that may be archived are no conflict",
        always("conflicts._perhaps_archived", ()),
        f"{_BESIDE_ARCHIVES}::test_a_write_that_was_pending_and_is_archived_conflicts",
        "P1: one of two writers undoes what the other one wrote",
    ),
    Mutant(
        "a savepoint whose neighbours are archived leaves its commit alone",
        skipped("archive_left_behind"),
        f"{_ARCHIVING}::test_a_savepoint_is_deleted_whose_neighbours_were_archived",
        "P1: rows of archived commits are not in the table any more",
    ),
    Mutant(
        "the commit of a savepoint is archived while files lie there that it has replaced",
        always("hidden_files", iter(())),
        f"{_SAVEPOINT_HOLES}::test_a_deleted_savepoint_brought_replaced_rows_back",
        "P1: rows that were overwritten or deleted are in the table again",
    ),
    Mutant(
        "what a late task left under the commit of a savepoint is archived with it",
        within(
            "archive_left_behind",
            _settle=lambda table, timeline, instants, found: instants,
        ),
        f"{_ARCHIVING}::test_a_task_at_work_under_the_commit_of_a_savepoint_keeps_it",
        "P1: files that no commit names count once their instant is archived",
    ),
    Mutant(
        "files that the commit of a savepoint names are of the newest slice, whatever is archived",
        always("NamedFile.is_before", False),
        f"{_SAVEPOINT_HOLES}::test_a_compaction_missed_the_base_file_of_a_savepoint",
        "a merge-on-read table is never compacted again",
    ),
    Mutant(
        "the guard is compared with batches of the active timeline alone",
        always("replay_guard._is_archived", False),
        f"{_SAVEPOINT_HOLES}::test_a_batch_in_a_hole_was_called_damage",
        "a sound table is called damaged",
    ),
    Mutant(
        "nobody looks for instants of a hole in the archive",
        always("instant_status._is_in_hole", False),
        f"{_SAVEPOINT_HOLES}"
        "::test_rows_in_a_hole_vanished_once_another_engine_had_deleted_the_savepoint",
        "P1: rows of archived commits are not in the table any more",
    ),
    Mutant(
        "when an instant in a hole was completed is not known",
        within("lsm_timeline.ended", archived_end=nothing),
        f"{_SAVEPOINT_HOLES}"
        "::test_rows_in_a_hole_vanished_once_another_engine_had_deleted_the_savepoint",
        "P1: records of log files count that a compaction had taken in",
    ),
    Mutant(
        "recovery rolls back what was completed and has lost its completed file",
        within("resolve_instant", refuse_lost=nothing),
        f"{_LOST_COMPLETIONS}::test_rows_of_a_lost_completion_were_left_out_and_deleted",
        "P1: committed rows are deleted",
    ),
    Mutant(
        "files of a completed write without an instant are orphans",
        instead("vanished_instants", returns({})),
        f"{_LOST_COMPLETIONS}"
        "::test_a_cleanup_deleted_the_files_of_a_write_whose_instant_has_vanished",
        "P3: cleanup deletes the rows of a commit whose timeline a copy would bring back",
    ),
    Mutant(
        "reads leave out what was completed and has lost its completed file",
        skipped("check_nothing_is_lost"),
        f"{_LOST_COMPLETIONS}::test_rows_of_a_lost_completion_were_left_out_and_deleted",
        "P1: committed rows are not read",
    ),
    Mutant(
        "reads go on over a clustering that has lost its completed file",
        Text("hiding = (*UNDONE_ACTIONS, Action.CLUSTERING)", "hiding = UNDONE_ACTIONS"),
        f"{_LOST_COMPLETIONS}::test_rows_over_a_lost_clustering_were_there_twice",
        "P1: rows are read twice, and older than they are",
    ),
    Mutant(
        "the newest decision is taken for one that is to be applied yet",
        within("lost_instants", newest_manifest=returns((1, b""))),
        f"{_LOST_COMPLETIONS}::test_rows_of_a_lost_completion_were_left_out_and_deleted",
        "P1: committed rows are not read",
    ),
    Mutant(
        "what may come after a rollback is not noted",
        skipped("note_late_files"),
        f"{_LATE_FILES}"
        "::test_a_file_put_after_a_rollback_is_deleted_before_its_instant_is_archived",
        "P1: other engines read rows of a batch that was rolled back",
    ),
    Mutant(
        "what may come after a commit is not noted",
        within(
            "exclusive_commit.finish",
            delete_leftovers=lambda storage, time, lost, **_: [
                storage.delete(path) for path in lost
            ],
        ),
        f"{_LATE_FILES}::test_a_file_put_after_the_completion_is_deleted",
        "P1: rows of a lost attempt count once the commit is archived",
    ),
    Mutant(
        "archiving does not look for late files",
        within("archiving._settle", delete_late_files=nothing),
        f"{_ARCHIVING}::test_a_file_that_came_after_a_rollback_is_gone_before_it_could_count",
        "P1: other engines read rows of a batch that was rolled back",
    ),
    Mutant(
        "archiving looks for late files of instants that lie before the timeline already",
        within(
            "archiving._settle",
            _start_after=lambda timeline, instants: timeline.commits[0].time,
        ),
        f"{_ARCHIVING}::test_a_file_that_came_after_a_rollback_is_gone_before_it_could_count",
        "P1: other engines read rows of a batch that was rolled back, until the next archiving",
    ),
    Mutant(
        "what may come late is looked for once",
        Text(
            "        if timeline.starts_after(time):\n            storage",
            "        if time:\n            storage",
        ),
        f"{_LATE_FILES}::test_a_file_put_after_archiving_is_deleted_by_the_next_archiving",
        "P1: other engines read rows of a batch that was rolled back",
    ),
    Mutant(
        "what may come late is looked for as long as the table lives",
        Text(
            "        if timeline.starts_after(time):\n            storage",
            "        if not time:\n            storage",
        ),
        f"{_LATE_FILES}::test_a_file_put_after_archiving_is_deleted_by_the_next_archiving",
        "archiving takes longer with each rollback",
    ),
    Mutant(
        "a note of late files is believed against the commit",
        Text(
            "            if commit is None or not view.names(time, path):", "            if path:"
        ),
        f"{_LATE_FILES}::test_committed_files_are_not_deleted",
        "P3: committed rows are deleted",
    ),
]
"""Of archiving."""

_CLUSTERING = "tests/integration/test_clustering.py"
_BESIDE_CLUSTERINGS = "tests/faults/regressions/test_pending_clusterings.py"
_CLUSTERER = "tests/unit/services/clustering/test_clusterer.py"
_ARCHIVE_CHANGE = "tests/unit/services/upgrade/test_archive.py"
ARCHIVE_CHANGES = [
    Mutant(
        "a change of layout leaves the archive behind",
        skipped("put_archive"),
        f"{_ARCHIVE_CHANGE}::test_plans_of_compactions_go_there_and_back",
        "what was archived is forgotten: replays are not recognised",
    ),
    Mutant(
        "a change of layout takes archived instants along twice",
        Text(
            "for row in whole_rows(storage, file) if row.key not in known)",
            "for row in whole_rows(storage, file))",
        ),
        f"{_ARCHIVE_CHANGE}::test_the_archive_of_layout_2_says_the_same_in_layout_1",
        "the archive grows with each call that was killed",
    ),
    Mutant(
        "archived instants are completed when they began",
        Text("later = entry.transition > padded(start)", "later = False"),
        f"{_ARCHIVE_CHANGE}::test_hudi_converts_an_archive_to_the_same",
        "incremental readers of Hudi's miss commits",
    ),
    Mutant(
        "archived instants are completed when their files were copied",
        within("_lsm_entries", ended_within=lambda start, written, limit: written),
        f"{_ARCHIVE_CHANGE}::test_log_files_of_archived_commits_stay_below_what_has_taken_them_in",
        "P1: rows come back that a downgrade has merged into base files",
    ),
    Mutant(
        "files count as left over that only later commits name",
        always("orphans._is_shared", False),
        "tests/unit/services/test_orphans.py"
        "::test_a_log_file_that_is_named_after_an_earlier_commit_stays",
        "P1: log files beside a clustering of Hudi's consistent buckets are deleted",
    ),
]
"""Of archives in the other layout."""

_VIRTUAL = "tests/integration/test_virtual_keys.py"
VIRTUAL_KEYS = [
    Mutant(
        "meta columns are filled in a table with virtual keys",
        Text(
            "virtual_keys is not None:\n        return _without_meta(context, rows)\n    sequence",
            "virtual_keys is False:\n        return _without_meta(context, rows)\n    sequence",
        ),
        f"{_VIRTUAL}::test_a_table_without_stored_keys_lives_on",
        "Hudi would read keys and times that its own writers do not keep up",
    ),
    Mutant(
        "rows are merged into a base file by stored keys that are null",
        Text(
            "            context.virtual_keys,\n            context.history",
            "            None,\n            context.history",
        ),
        f"{_VIRTUAL}::test_a_table_without_stored_keys_lives_on",
        "P1: the old row stays beside the new one",
    ),
    Mutant(
        "a look-up reads stored keys that are null",
        Text("base.path, trusted=base.trusted, made=made)", "base.path, trusted=base.trusted)"),
        f"{_VIRTUAL}::test_a_table_without_stored_keys_lives_on",
        "P1: an upsert puts a row beside the one it takes the place of",
    ),
]
"""Of tables whose files do not hold record keys."""

CLUSTERINGS = [
    Mutant(
        "a completed clustering that is taken back leaves its plan on the timeline",
        within("remove_from_timeline", _BEGUN_AS={}),
        f"{_CLUSTERING}::test_a_clustering_that_is_taken_back_is_not_pending",
        "no earlier write can be taken back, and a later clustering looks for files that are gone",
    ),
    Mutant(
        "a batch is committed to what a clustering is to rewrite",
        skipped("conflicts._check_services"),
        f"{_BESIDE_CLUSTERINGS}::test_file_groups_of_a_pending_clustering_are_not_changed",
        "P1: the rows are gone once the clustering completes",
    ),
    Mutant(
        "a recovery rolls a clustering back",
        Text("found if not is_pending_clustering(table.storage, instant)]", "found]"),
        f"{RECOVERY}::test_a_pending_clustering_stays_and_so_do_its_files",
        "a clustering of another engine never comes to its end",
    ),
    Mutant(
        "a sweep takes the claim of a service",
        Text(
            "        if latest and padded(time) > latest and paths", "        if not time and paths"
        ),
        "tests/unit/transaction/test_recovery.py"
        "::test_the_claim_of_a_service_that_is_about_to_be_planned_stays",
        "P5: a write and a clustering have one time",
    ),
    Mutant(
        "log files are left out of a clustering",
        Text(
            "reader.read(slice_, columns) for slice_ in given.slices",
            "reader.read(replace(slice_, logs=()), columns) for slice_ in given.slices",
        ),
        f"{_CLUSTERING}::test_log_files_are_merged",
        "P1: updates and deletes are undone",
    ),
    Mutant(
        "what another engine left of a clustering counts",
        skipped("delete_uncounted"),
        f"{_CLUSTERING}::test_files_that_another_engine_left_of_a_plan_do_not_count",
        "P1: readers that list folders read rows twice",
    ),
    Mutant(
        "a plan that is decided waits for the next write",
        skipped("ServiceContext.current_timeline"),
        f"{_CLUSTERER}::test_a_plan_that_is_decided_and_not_there_is_carried_out",
        "a clustering that was asked for is not done",
    ),
]
"""Of clusterings."""

_CHANGES = "tests/integration/test_change_data.py"
CHANGES = [
    Mutant(
        "rows that go are not logged",
        skipped("ChangeLog.removed"),
        f"{_CHANGES}::test_what_is_logged_makes_one_snapshot_of_the_other",
        "queries of changes call updates inserts, and tell of no delete",
    ),
    Mutant(
        "only names of base files tell who wrote them",
        instead(
            "written_by",
            lambda written_by, name: written_by(name) if name.endswith(".parquet") else None,
        ),
        f"{_CHANGES}::test_what_is_taken_back_takes_its_change_data_along",
        "change data of writes that were undone stays for ever",
    ),
    Mutant(
        "a clean leaves change data",
        within("clean_planner._file", CdcFileName=Changed(None, parse=returns(None))),
        f"{_CHANGES}::test_a_clean_takes_change_data_with_the_base_files",
        "change data of every commit stays for ever",
    ),
    Mutant(
        "a log file tells of itself alone",
        Text("base_file=base_file, slice_logs=logs", "base_file=base_file, slice_logs=()"),
        f"{_CHANGES}::test_log_files_tell_the_slice_that_they_change",
        "the JVM compares a log file with the base file, and not with the rows before it",
    ),
]
"""Of change data."""

_COMPLETION = "tests/unit/transaction/test_completion.py"
_SLICING = "tests/unit/table/test_slicing.py"
LAYOUT_2 = [
    Mutant(
        "an instant completes by the clock, before others that are there",
        within(
            "completion.completion_time",
            next_time=Around(lambda next_time, now, utc, _: next_time(now, utc, None)),
        ),
        f"{_COMPLETION}::test_completion_times_are_later_than_every_time_whatever_the_clocks",
        "a log file counts as merged into a base file that was made before it",
    ),
    Mutant(
        "whoever ends an instant beside others chooses a completion time of its own",
        within("completion._agreed", completion_path=lambda time: f".hoodie/.temp/{uuid.uuid4()}"),
        f"{_COMPLETION}::test_a_completion_time_chosen_by_a_dead_process_is_kept",
        "an instant is on the timeline twice",
    ),
    Mutant(
        "nobody looks whether another one has ended the instant meanwhile",
        within("completion._agreed", find_completed=nothing),
        f"{_COMPLETION}::test_two_processes_that_complete_an_instant_use_one_completion_time",
        "an instant is on the timeline twice",
    ),
    Mutant(
        "log files lie on a base file by the times of their requests",
        within("_ByCompletion._is_above", ended=returns("0")),
        f"{_SLICING}::test_a_log_file_lies_on_the_base_file_that_was_begun_before_it_ended",
        "P2: rows of a write that a compaction overtook are gone",
    ),
    Mutant(
        "all log files of a file group lie on its newest base file",
        always("_ByCompletion._is_above", True),
        f"{_SLICING}::test_a_log_file_that_ended_before_is_in_the_base_file",
        "rows that a compaction has merged come back over later ones",
    ),
    Mutant(
        "log files are merged in the order in which they were completed",
        within("_ByCompletion.latest", _requested=lambda log: (-int(log.name.base_instant), 0, "")),
        f"{_SLICING}::test_log_files_merge_in_the_order_in_which_they_were_asked_for",
        "of two rows with one ordering value Hudi on the JVM sees another than this library",
    ),
    Mutant(
        "instants are archived that the archive has",
        instead("lsm_writer._missing", once_more()),
        f"{_LSM_WRITER}::test_archived_instants_are_not_put_again",
        "Hudi lists an instant twice, and an archiver that was killed leaves it so",
    ),
    Mutant(
        "of an instant that was archived twice both stay",
        within(
            "lsm_writer._merged", pc=Changed(pc, is_in=lambda keys, _: pa.repeat(False, len(keys)))
        ),
        f"{_LSM_WRITER}::test_of_what_others_archived_twice_one_stays",
        "Hudi lists an instant twice",
    ),
    Mutant(
        "files of the archive are deleted with the manifest that no longer lists them",
        within("lsm_writer.merge_and_clean", _SNAPSHOTS_KEPT=1),
        f"{_LSM_WRITER}::test_what_is_called_what_and_stays_is_as_in_hudis_folder",
        "a reader that has begun with an older manifest finds its files gone",
    ),
]
"""Of completion times, and of the archive of layout 2."""

_HINTS = "tests/unit/test_hints.py"
_VERIFY = "tests/unit/inspection/test_verify.py"
_COMMITTED = "tests/unit/inspection/test_committed_files.py"

INSPECTION = [
    Mutant(
        "whether a file of the archive is lost is not asked where data files are missing",
        within("committed_files.committed_files", gaps=returns(())),
        f"{_COMMITTED}::test_a_lost_file_of_the_archive_makes_no_data_file_missing",
        "an operator restores the table for files that were replaced long ago",
    ),
    Mutant(
        "an empty file of a clean or rollback is all that is checked",
        within("verify.broken_instants", damaged_instants=lambda table, _: empty_instants(table)),
        f"{_VERIFY}::test_damaged_services[*.clean-True-6]",
        "P20: the damage of data files is not found",
    ),
    Mutant(
        "plans of services are not checked",
        always("damaged_plans", ()),
        f"{_HINTS}::test_a_damaged_plan_is_given_up"
        "[v6_mor_compaction_inflight-*.compaction.requested-compact-Obj]",
        "an operator learns of a damaged plan by the writes that it stops",
    ),
    Mutant(
        "the plan of a completed compaction has to be there",
        within("CompactionPlanner._missing_partitions", CorruptFileError=KeyError),
        f"{_VERIFY}::test_nothing_depends_on_the_plan_of_a_completed_compaction[-6]",
        "a table is not compacted any more for a file that is not needed",
    ),
    Mutant(
        "cleanup takes files of instants that are pending",
        Text(
            "    if timeline.is_pending(time):\n        return False\n    if time in undone:",
            "    if timeline.is_pending(time):\n        return True\n    if time in undone:",
        ),
        "tests/unit/services/test_orphans.py::test_files_that_may_still_be_used_stay",
        "a writer at work loses its files",
    ),
    Mutant(
        "verify believes what a process has read of commits before",
        always("damaged_instants.damaged_instants", ()),
        f"{_VERIFY}::test_a_damaged_commit",
        "a table whose commit is damaged is called in order",
    ),
    Mutant(
        "verify asks no archived commit for its files",
        always("committed_files._add_archived", None),
        f"{_COMMITTED}::test_damage_to_files_of_archived_commits",
        "rows are lost with files that were last written long ago, and nobody is told",
    ),
    Mutant(
        "a file group that was replaced long ago is never missed, though its name came back",
        Text("if start > end and group", "if not end and group"),
        f"{_COMMITTED}::test_files_that_were_replaced_long_ago_are_not_missed",
        "rows are lost with a file group whose name an older one had, and nobody is told",
    ),
    Mutant(
        "verify takes an empty file of a completed instant for whole",
        within("verify.verify_table", empty_instants=returns(())),
        f"{_VERIFY}::test_damaged_services[*.clean-True-6]",
        "an instant whose bytes a power failure took is not missed",
    ),
    Mutant(
        "verify compares no rows with their commit",
        always("verify._base_findings", ()),
        f"{_VERIFY}::test_what_a_writer_with_a_bug_leaves",
        "rows that a writer lost are not missed",
    ),
    Mutant(
        "codes in CSV files that begin with a zero are loaded as numbers",
        instead("_with_leading_zeros", lambda _, __, schema: schema),
        "tests/unit/cli/test_creation.py::test_digits_that_begin_with_a_zero_are_strings",
        "P23: 007 and 7 become one key",
    ),
    Mutant(
        "a command that changes a table takes no answer for yes",
        within("changes._agreed", click=Changed(click, confirm=nothing)),
        "tests/unit/cli/test_changes.py::test_neither_a_dry_run_nor_the_answer_no_changes_anything",
        "rows are lost that their owner wanted to keep",
    ),
    Mutant(
        "`hoodie-py create` takes a table that is there for one that it makes",
        Text("if _exists(target):", "if False:"),
        "tests/unit/cli/test_creation.py::test_an_empty_table_is_created",
        "a user takes an old table with other columns for a new one",
    ),
    Mutant(
        "a hint shows a password of the command line",
        within("target._given", shown=lambda key, value: value),
        f"{_HINTS}::test_hints_keep_no_secret",
        "a password is in the log of a job",
    ),
    Mutant(
        "a hint forgets the options of the command line",
        always("target._given", ()),
        f"{_HINTS}::test_hints_keep_the_options_of_the_command_line",
        "a pasted command finds no table, or another one",
    ),
    Mutant(
        "a hint forgets that the metadata table has to go",
        Text(", *dropping(self.properties, name))", ")"),
        f"{_HINTS}::test_hints_at_a_metadata_table_say_that_it_may_go",
        "a pasted command is refused",
    ),
    Mutant(
        "a write that reads a damaged file says less than a read",
        within("_write_rows", naming_remedies=lambda *_: nullcontext()),
        f"{_HINTS}::test_a_write_that_reads_a_damaged_file_names_the_remedy_that_verify_does",
        "a stream stops, and its error names no command that helps",
    ),
    Mutant(
        "an error loses its remedy on the way from a task",
        within("CorruptFileError.__reduce__", type=lambda _: Exception),
        f"{_HINTS}::test_a_write_that_reads_a_damaged_file_names_the_remedy_that_verify_does",
        "a stream stops, and its error names no command that helps",
    ),
    Mutant(
        "a partition whose files are gone is none",
        within("table_files", near_groups=returns(set())),
        f"{_HINTS}::test_a_partition_that_is_gone_is_given_up_by_what_all_messages_name"
        "[COPY_ON_WRITE-9]",
        "no command makes the table one that can be read again",
    ),
    Mutant(
        "a lost file that only a savepoint keeps is mended by a delete of its partition",
        Text(
            "lost_savepoint(pinned",
            "__import__('hoodie_ds.hints').hints.missing("
            "pinned.table.command, path, sizes, '') or (pinned",
        ),
        f"{_HINTS}::test_a_file_that_only_a_savepoint_keeps_is_given_up_by_its_deletion"
        "[COPY_ON_WRITE-9]",
        "a pasted command changes nothing, and is named again",
    ),
    Mutant(
        "a file of the archive that is lost is taken for one that was merged",
        Text("if not lost:", "if True:"),
        f"{_HINTS}::test_a_damaged_file_of_the_archive_is_to_be_restored[*.parquet-None]",
        "instants are lost with a file of the archive, and nothing is reported",
    ),
    Mutant(
        "a compaction whose log files are gone may run again",
        Text("if not merged <= names or any(", "if any("),
        f"{_HINTS}::test_a_lost_base_file_of_a_compaction_is_written_again_from_its_log_files[6]",
        "the completed file is deleted, and the compaction cannot be carried out",
    ),
    Mutant(
        "a lost `_version_` is not looked at",
        always("committed_files._unnamed_manifest", ()),
        f"{_HINTS}::test_a_damaged_file_of_the_archive_is_to_be_restored[_version_-None]",
        "a manifest that is lost after that is not missed",
    ),
    Mutant(
        "a damaged decision is not looked for",
        within("lost_findings", damaged_decisions=returns({})),
        f"{_HINTS}::test_an_empty_decision_is_named_and_may_be_deleted[COPY_ON_WRITE-9-False]",
        "verify ends at a damaged decision, and names no file",
    ),
    Mutant(
        "a completed write that has vanished is not shown",
        within("pending_rows", vanished_writes=returns(())),
        f"{_HINTS}::test_a_write_all_of_whose_files_on_the_timeline_are_gone_is_shown[9]",
        "an operator is told that all is well, and rows are left out",
    ),
    Mutant(
        "the report ends at a damaged commit",
        within("page._readable", CorruptFileError=ZeroDivisionError),
        f"{_HINTS}::test_show_names_an_empty_commit_and_shows_the_rest[1-9]",
        "an operator gets no page of a table of which one commit is damaged",
    ),
    Mutant(
        "a write takes a lost clustering for one that is pending",
        within("conflicts._check_services", refuse_lost=nothing),
        "tests/faults/regressions/test_lost_completions.py"
        "::test_rows_over_a_lost_clustering_were_there_twice[9-COPY_ON_WRITE]",
        "an operator is told to roll back a clustering that is complete",
    ),
    Mutant(
        "what has no byte is not looked at",
        within("overview._remarks", empty_instants=returns(())),
        f"{_HINTS}::test_an_instant_without_a_byte_is_shown_as_verify_has_it[9]",
        "an operator is told that all is well, and verify finds damage",
    ),
    Mutant(
        "a missing file is mended by a restore to the commit that wrote it",
        instead("Timeline.time_before", lambda _function, _timeline, time: time),
        f"{_HINTS}"
        "::test_a_missing_file_of_an_older_commit_is_mended_by_the_restore_that_all_messages_name"
        "[COPY_ON_WRITE-9]",
        "a pasted restore leaves the table as damaged as it was",
    ),
    Mutant(
        "show ends at an empty commit",
        within("table_overview", CorruptFileError=ZeroDivisionError),
        f"{_HINTS}::test_show_names_an_empty_commit_and_shows_the_rest[1-9]",
        "an operator sees nothing of a table of which one commit is damaged",
    ),
    Mutant(
        "a write that failed beside others looks alive",
        within("_dead_where_it_fails", heartbeat=SimpleNamespace(stop=nothing)),
        f"{IN_THE_HAND}::test_a_failed_write_left_its_instant_until_its_heartbeat_expired",
        "pending instants grow with each try",
    ),
    Mutant(
        "a write that was overtaken looks alive",
        Text("self.abort(messages)  # otherwise", "pass  # otherwise"),
        f"{IN_THE_HAND}::test_a_conflict_left_its_instant_until_its_heartbeat_expired",
        "pending instants grow with each try",
    ),
    Mutant(
        "nobody is told whose lock it is",
        within("lock.held", _holder=returns("")),
        "tests/unit/transaction/test_lock.py::test_a_lock_timeout_names_the_holder_and_the_expiry",
        "an operator waits for a dead writer, and does not know for how long",
    ),
    Mutant(
        "a table that lost its properties passes for one that was never made",
        within("_without_properties", load_timeline=returns(SimpleNamespace(completed=()))),
        f"{_HINTS}::test_properties_that_were_lost_are_made_anew_and_nothing_is_removed"
        "[COPY_ON_WRITE-9]",
        "an operator removes a table of which one file was lost",
    ),
    Mutant(
        "a change of version does not say what it compacts",
        within("change_version", logged_groups=returns(())),
        "tests/unit/cli/test_changes.py"
        "::test_a_version_change_shows_its_compactions_and_what_cannot_be_rolled_back",
        "files are rewritten that their owner thought would stay",
    ),
    Mutant(
        "a compaction that is held back has nothing to do",
        within("Compactor._reason", holding_back=returns(())),
        "tests/unit/cli/test_changes.py::test_a_compaction_delayed_by_a_pending_write_says_so",
        "log files grow, and nobody knows why nothing merges them",
    ),
    Mutant(
        "blocks of log files tell nothing of a write whose instant has vanished",
        always("orphans._logged", set()),
        "tests/faults/regressions/test_lost_completions.py"
        "::test_log_blocks_of_a_write_whose_instant_has_vanished_were_not_missed",
        "P1: rows are gone, and verify finds nothing",
    ),
    Mutant(
        "`hoodie-py commits` leaves no column out",
        within("_print_table", _fitting=lambda columns, widths, room: [*range(len(columns))]),
        "tests/unit/cli/test_views.py::test_a_narrow_terminal_has_the_times_of_commits_whole",
        "a narrow terminal shows commits without their times",
    ),
]
"""Of what is found out about a table, and of the command."""

SYNC = "tests/unit/sync/test_tool.py"

CATALOGS = [
    Mutant(
        "a sync looks at the commits that began after the last one alone",
        within(
            "SyncTool._new_commits",
            commits_since=lambda timeline, last, *_: (
                i for i in timeline.commits_backwards() if i.time > last
            ),
        ),
        f"{SYNC}::test_a_commit_that_was_pending_at_the_last_sync_is_not_missed",
        "the partitions of a slow writer are never registered",
    ),
    Mutant(
        "a sync does not look whether a partition has rows left",
        within(
            "touched_partitions",
            FileSystemView=lambda *_, **__: SimpleNamespace(latest_slices=lambda _: ["one"]),
        ),
        f"{SYNC}::test_deleted_partitions_are_dropped",
        "partitions that were deleted stay in the catalog",
    ),
    Mutant(
        "a sync that fails is the failure of its batch",
        within("_in_turn", attempted=lambda service, root, instant, work: work()),
        f"{SYNC}::test_the_next_sync_makes_up_for_a_failed_one",
        "a stream stops since a catalog is down",
    ),
]
"""Of what a catalog is told."""

_DELTA = "tests/integration/test_delta.py"
_AFTER_COMMIT = "tests/unit/services/test_post_commit.py"
DELTA = [
    Mutant(
        "a version of a Delta log takes the place of another's",
        within(
            "put_version",
            put_decisively=lambda storage, path, body: storage.replace(path, body) is None,
        ),
        f"{_DELTA}::test_of_two_syncs_at_once_each_version_comes_once",
        "readers of Delta miss files that another sync had added",
    ),
    Mutant(
        "a write begins that a follower cannot take in",
        within("Coordinator.begin", followers=returns(())),
        f"{_DELTA}::test_what_delta_has_no_type_for_is_refused_before_anything_is_written",
        "readers of Delta never see the table again",
    ),
    Mutant(
        "a batch that is repeated leaves the followers behind",
        within("Coordinator._commit_nothing_written", catch_up=returns(())),
        f"{_DELTA}::test_a_batch_that_is_repeated_makes_up_for_the_sync_of_its_commit",
        "a stream that is at its end leaves the Delta log without its last rows",
    ),
    Mutant(
        "a follower is not called after a batch that is repeated",
        within("Coordinator._commit_nothing_written", catch_up=returns(())),
        f"{_FOLLOWERS}::test_a_write_is_known_wherever_its_process_ends[first batch, crashes]",
        "a stream that is at its end leaves its followers behind",
    ),
    Mutant(
        "a clean goes before what names its files",
        within("_in_turn", Service=(Service.CLEAN, Service.DELTA, Service.CATALOG)),
        f"{_AFTER_COMMIT}"
        "::test_followers_that_name_files_are_updated_before_a_clean_and_others_last",
        "readers of Delta are sent to files that are gone",
    ),
    Mutant(
        "a clean waits for a catalog",
        Text("if follower.names_files:  #", "if True:  #"),
        f"{SYNC}::test_services_by_hand_need_no_catalog",
        "a table grows for as long as a catalog is down",
    ),
    Mutant(
        "a clean does not wait for the Delta log",
        always("ServiceContext.followers", ()),
        f"{_DELTA}::test_a_clean_deletes_nothing_that_the_log_still_names",
        "readers of Delta are sent to files that are gone",
    ),
    Mutant(
        "what a clean has taken before a sync stays in the Delta log",
        within("changes_since", _DELETING=()),
        f"{_DELTA}::test_a_clean_without_the_option_is_found_out",
        "readers of Delta are sent to files that are gone",
    ),
    Mutant(
        "an older commit that completes late is taken for one that the Delta log has",
        Text("(*beyond, *late)", "(*beyond,)"),
        f"{_DELTA}::test_a_commit_that_completes_after_a_later_one_comes_too",
        "readers of Delta miss the rows of a commit",
    ),
    Mutant(
        "a table that changes its version tells its Delta log nothing",
        within("HoodieTable._change_version", followed=lambda context, work: work()),
        f"{_DELTA}::test_the_log_goes_on_when_the_table_changes_its_version",
        "readers of Delta miss what an upgrade has compacted",
    ),
    Mutant(
        "the Delta log of a table whose commits are all taken back stays",
        Text("if columns is None and not last.num_files:", "if columns is None:"),
        f"{_DELTA}::test_a_table_whose_only_commit_is_taken_back_is_empty",
        "readers of Delta are sent to files that are gone",
    ),
    Mutant(
        "the Delta log tells bounds of some columns of a file alone",
        Text(
            'not (found["minValues"].keys() == found["maxValues"].keys() == set(columns))', "False"
        ),
        "tests/unit/sync/delta/test_files.py::test_unknown_or_unsupported_statistics_are_left_out",
        "a filter of deltalake's Arrow dataset hides rows",
    ),
]

_RESCALE = "tests/integration/test_bucket_rescale.py"

BUCKET_RESCALES = [
    Mutant(
        "a writer of the old buckets commits after a rescaling",
        always("BucketIndex.changed_by", None),
        f"{_RESCALE}::test_rows_that_are_written_later_into_buckets_of_before_are_refused",
        "a key is in two buckets",
    ),
    Mutant(
        "a rescaling passes over rows of a new partition",
        Text("common = common or sorted(others)", "common = common or []"),
        f"{_RESCALE}::test_rows_that_come_meanwhile_are_not_lost",
        "rows stay in buckets that the table has no more",
    ),
    Mutant(
        "the number of buckets outlives the rollback of its instant",
        within("remove_from_timeline", drop_rescaled=nothing),
        f"{_RESCALE}::test_what_a_stopped_process_puts_late_does_not_count",
        "other engines hash into buckets that the table never had",
    ),
    Mutant(
        "a rescaling is not complete before its number of buckets counts",
        Text("time == _FIRST or counts(storage, timeline, time)", "True"),
        f"{_RESCALE}::test_killed_anywhere_it_is_done_or_not",
        "a key is in two buckets",
    ),
]

_HISTORY = "tests/property/test_query_histories.py::test_every_moment_and_every_range"
_ARCHIVED = "tests/integration/test_archived_commits.py"
_FAR = (
    "tests/unit/reader/test_incremental.py"
    "::test_a_range_that_reaches_into_the_archive_ends_where_it_ends"
)
_OPERATIONS = "tests/integration/test_row_operations.py"
_SOME = "tests/unit/reader/test_incremental.py"
_LONG = f"{_SOME}::test_a_commit_that_took_long_is_archived"
QUERIES = [
    Mutant(
        "an incremental query begins with the commit after which it is to begin",
        Text("options.begin < time and", "options.begin <= time and"),
        "tests/unit/api/test_hoodie_table.py::test_queries_take_results_of_writes_and_instants[9]",
        "a reader that goes on gets the last commit twice",
    ),
    Mutant(
        "an incremental query ends before its last commit",
        Text("time <= options.end)", "time < options.end)"),
        f"{_HISTORY}[1-6-COPY_ON_WRITE-true]",
        "a reader that goes on misses a commit",
    ),
    Mutant(
        "time travel ends before the commit of the moment",
        Text("lambda instant: instant.time <= moment)", "lambda instant: instant.time < moment)"),
        f"{_HISTORY}[5-9-COPY_ON_WRITE-false]",
        "P3: a query as of a commit lacks its rows",
    ),
    Mutant(
        "time travel goes back to what was cleaned",
        skipped("time_travel._refuse_cleaned"),
        "tests/golden/test_queries.py::test_every_query_answers_as_hudi_does"
        "[v6_cow_archived_beyond_savepoint]",
        "P3: a query of the past lacks the rows of files that were cleaned",
    ),
    Mutant(
        "an incremental query passes over files that were cleaned",
        always("incremental._missing", None),
        "tests/integration/test_table_streams.py::test_the_cleaner_was_faster",
        "P3: rows of a range are missing without a word",
    ),
    Mutant(
        "a reader does not look whether a clean was faster",
        Text("if self.verify or self.is_past:", "if False:"),
        "tests/faults/test_services.py::test_a_twelfth_of_all_schedules[reader, clean-9]",
        "P3: rows of a moment are missing without a word",
    ),
    Mutant(
        "an incremental query that reaches into the archive looks at the table of now",
        Text("_full_scan(_at_the_end(pinned, found, options), ", "_full_scan(pinned, "),
        f"{_FAR}[6-COPY_ON_WRITE]",
        "P3: rows that later commits wrote again are missing without a word",
    ),
    Mutant(
        "a range that ends in a hole of the timeline is read as of the commit before it",
        Text(
            "max((*found.archived, *found.active), key=moment)",
            "(found.active or found.archived)[-1]",
        ),
        "tests/faults/regressions/test_savepoint_holes.py"
        "::test_a_range_that_ends_in_a_hole_ended_before_it[MERGE_ON_READ]",
        "P3: an incremental query has rows of before its range's last commits",
    ),
    Mutant(
        "a scan of the whole table does not merge what came after the range",
        Text("if not self.full_scan:", "if True:"),
        "tests/unit/reader/test_incremental.py"
        "::test_a_scan_of_the_whole_table_merges_what_came_later_as_hudi_does[avro-True]",
        "P3: an incremental query has other rows than Hudi's",
    ),
    Mutant(
        "an incremental query looks for the commits of its range on the active timeline alone",
        always("archive.archived_writes_ended_after", []),
        f"{_LONG}[True]",
        "P3: rows of a commit that took long are missing without a word",
    ),
    Mutant(
        "a compaction that took long and was archived is news",
        Text("if not file_changes(table.storage, i).is_rewrite]", "if file_changes]"),
        f"{_LONG}[False]",
        "a stream of changes fails though it has missed nothing",
    ),
    Mutant(
        "an incremental query merges what commits after its range logged",
        Text("super().is_committed(time) and time in self.only", "super().is_committed(time)"),
        "tests/unit/reader/test_incremental.py"
        "::test_blocks_of_later_commits_in_a_log_file_of_the_range_do_not_count",
        "P3: rows that later commits wrote again are missing without a word",
    ),
    Mutant(
        "a row of before an update is live",
        within("deletes_among", _DELETING=("D",)),
        f"{_OPERATIONS}::test_writes[6-cow-True]",
        "P3: rows that an update took away are there",
    ),
    Mutant(
        "a column that says which rows are deletes is read only if it is asked for",
        Text("IS_DELETED, ROW_OPERATION, *marker}", "IS_DELETED, *marker}"),
        f"{_OPERATIONS}::test_reads_of_log_files[9-mor_parquet]",
        "P3: what a query returns depends on the columns that it returns",
    ),
    Mutant(
        "a merge into a base file does not look which rows are deletes",
        Text("            ROW_OPERATION,\n            *(marker", "            *(marker"),
        f"{_OPERATIONS}::test_writes[9-cow-True]",
        "P3: rows that were deleted are there",
    ),
    Mutant(
        "rows of base files that call themselves deletes are rescaled",
        Text("if are_deletes(plan, piece).any():", "if False:"),
        f"{_OPERATIONS}::test_rows_that_call_themselves_deletes_are_not_dropped_in_silence",
        "a table is called damaged that is not",
    ),
    Mutant(
        "operations are written that Hudi fails on",
        Text("name == ROW_OPERATION and", "False and"),
        f"{_OPERATIONS}::test_what_hudi_cannot_read_is_refused",
        "P3: Hudi cannot read the table",
    ),
    Mutant(
        "an incremental query passes over rows of blocks that lack columns",
        Text("if not lacking:", "if True:"),
        f"{_HISTORY}[8-8-MERGE_ON_READ-false]",
        "P3: updates of some columns are missing without a word",
    ),
    Mutant(
        "an incremental query fills columns that its range lacks with values of later commits",
        Text("end = replace(pinned, timeline=_until(pinned, options.end), is_past=True)", "pass"),
        f"{_HISTORY}[8-8-MERGE_ON_READ-false]",
        "P3: updates of some columns are missing without a word",
    ),
    Mutant(
        "the life of a key has nulls for columns that were not updated",
        Text("if mine.lacking is not None:", "if False:"),
        "tests/golden/test_inspection.py::test_the_life_of_a_key_has_the_columns_that_were_updated",
        "an operator takes values for lost that are there",
    ),
    Mutant(
        "which rows a range has depends on the columns that are asked for",
        Text("columns if lacking is None else self.schema.names", "columns"),
        f"{_SOME}::test_rows_of_some_columns_are_whole[9-avro]",
        "P3: rows come that lost against others",
    ),
    Mutant(
        "nobody looks whether the files are there that fill what a range lacks",
        within("_Executor._whole", check_nothing_is_missing=nothing),
        f"{_SOME}::test_rows_of_some_columns_are_whole[9-avro]",
        "P3: updates of some columns come with nulls for the others",
    ),
    Mutant(
        "changes of a file group are told for each of its log files",
        Text("for group in logged:", "for group in [*logged, *logged]:"),
        f"{_HISTORY}[7-6-MERGE_ON_READ-true]",
        "changes are told twice",
    ),
    Mutant(
        "a timeline of the past does not know what has been archived",
        Text("return replace(kept, begins=min(self.start, padded(time)))", "return kept"),
        f"{_ARCHIVED}::test_changes_of_the_first_commit_after_the_archive[None-6-MERGE_ON_READ]",
        "changes of the first commit after the archive have no rows before them",
    ),
    Mutant(
        "the first commit that is not archived is rolled back",
        skipped("rollback._check_not_first"),
        f"{_ARCHIVED}::test_the_first_commit_that_is_not_archived_cannot_be_rolled_back[None-9]",
        "P1: the rows of all archived commits are gone",
    ),
    Mutant(
        "an older slice is taken for one that was cleaned",
        always("changes._last_written", {}),
        f"{_ARCHIVED}::test_changes_of_a_slice_that_was_cleaned_beside_one_that_a_savepoint_keeps"
        "[MERGE_ON_READ-6]",
        "changes are told that never were",
    ),
    Mutant(
        "the last row groups of a large base file are in no part",
        Text("for n in range(count) if n * parts", "for n in range(count - 1) if n * parts"),
        "tests/spark/test_pushed.py::test_a_large_base_file_is_several_splits",
        "P3: rows of large files are not read",
    ),
    Mutant(
        "persisted rows are known without the commits and slices that they are of",
        Text("state.digest, pickle_digest(made_of)", "b'', pickle_digest(str(made_of[2]))"),
        "tests/spark/test_persisted.py::test_rows_read_again_need_no_log_files",
        "P3: rows are read as they were before the newest commits",
    ),
    Mutant(
        "a DataFrame is held for each filter that was ever read with",
        Text("held > most or place >= MOST_FRAMES", "held > most"),
        "tests/spark/test_persisted.py::test_frames_of_ever_other_filters_are_let_go",
        "the driver's memory grows with every read by another key",
    ),
    Mutant(
        "rows that a merge hook made are persisted",
        Text(
            "most = 0 if query.pinned.merge_hook is not None else parsed.persist_max_bytes",
            "most = parsed.persist_max_bytes",
        ),
        "tests/spark/test_read.py::test_a_hook_merges",
        "a hook that was changed is not asked",
    ),
    Mutant(
        "sessions have the persisted rows of one another",
        Text("key = session, state.table, state.digest", 'key = "", state.table, state.digest'),
        "tests/spark/test_persisted.py::test_what_was_not_used_for_longest_is_let_go",
        "Spark's settings of another session decide",
    ),
    Mutant(
        "persisted rows of older states of a table stay",
        Text("key[:2] == table and entry.state.digest != newest.state.digest", "False"),
        "tests/spark/test_persisted.py::test_what_was_not_used_for_longest_is_let_go",
        "executors hold rows that nobody will ask for",
    ),
    Mutant(
        "persisted rows have no limit but their number",
        Text("held > most or place >= MOST_FRAMES", "place >= MOST_FRAMES"),
        "tests/spark/test_persisted.py::test_what_was_not_used_for_longest_is_let_go",
        "executors hold more than the user allows",
    ),
    Mutant(
        "rows that are read again are not persisted",
        Text("elif entry.frame.storageLevel == StorageLevel.NONE:", "elif entry.size < 0:"),
        "tests/spark/test_persisted.py::test_what_was_not_used_for_longest_is_let_go",
        "each query merges the log files anew",
    ),
    Mutant(
        "rows of a Spark that was stopped are unpersisted",
        Text("if same_context:  # else it has been stopped", "if True:"),
        "tests/spark/test_persisted.py::test_what_was_not_used_for_longest_is_let_go",
        "a read in the next session fails",
    ),
    Mutant(
        "base files of one size are taken for one another",
        Text("by_name = len(set(sizes)) < len(sizes)", "by_name = False"),
        "tests/spark/test_persisted.py::test_rows_read_again_need_no_log_files",
        "P3: rows that logs replace are read, and others are not",
    ),
    Mutant(
        "every column is named to the JVM, whatever its type",
        Text(
            "continue  # to name a column takes a dozen messages to the JVM",
            "named((field.name,))",
        ),
        "tests/spark/test_read.py::test_columns_cost_no_messages_to_the_jvm",
        "planning takes longer than a count",
    ),
    Mutant(
        "positions of replaced rows are looked up in another bit",
        within("_Scan._kept", _STAYS=_STAYS.replace("& 63", "& 31")),
        "tests/spark/test_read.py::test_rows_are_left_out_in_any_part_of_a_file[true]",
        "P3: rows that logs replace are read, and others are not",
    ),
]
"""Of queries."""

_CHANGED = (
    "tests/integration/test_file_changes.py"
    "::test_instants_of_every_action_tell_which_files_are_there"
)

FILE_CHANGES = [
    Mutant(
        "files that only a savepoint names are orphans",
        Text(
            "(status for status in files if status.path not in kept)",
            "(status for status in files)",
        ),
        "tests/faults/regressions/test_lost_completions.py"
        "::test_files_of_a_savepoint_with_a_lost_completion_were_deleted[6]",
        "the table cannot be restored to the savepoint",
    ),
    Mutant(
        "a savepoint does not keep a commit whose completed file is lost",
        within("rollback._checked", check_no_savepoint=nothing),
        "tests/faults/regressions/test_lost_completions.py"
        "::test_files_of_a_savepoint_with_a_lost_completion_were_deleted[9]",
        "the table cannot be restored to the savepoint",
    ),
    Mutant(
        "a commit does not name its files of change data",
        Text(
            "        return self.path, *(path for path, _ in self.change_files)",
            "        return (self.path,)",
        ),
        f"{_CHANGED}[COPY_ON_WRITE-9]",
        "files of change data pass for orphans",
    ),
    Mutant(
        "a clean is not known to have deleted its files",
        Text("deleted=CleanMetadata.from_bytes(body, path).paths", "deleted=frozenset()"),
        f"{_CHANGED}[COPY_ON_WRITE-6]",
        "P12: a restore goes back to files that are gone",
    ),
    Mutant(
        "a rollback is not known to have deleted its files",
        Text("cls._of_rollbacks(done_files(body, path))", "cls()"),
        f"{_CHANGED}[MERGE_ON_READ-9]",
        "followers go on with files that are gone",
    ),
    Mutant(
        "a restore is not known to have deleted its files",
        Text("cls._of_rollbacks(restored_files(body, path))", "cls()"),
        f"{_CHANGED}[MERGE_ON_READ-9]",
        "followers go on with files that are gone",
    ),
    Mutant(
        "log files with rollback blocks are not known",
        Text("removed=removed, marked=marked)", "removed=removed)"),
        "tests/integration/test_file_changes.py"
        "::test_a_rollback_tells_in_which_log_files_it_hid_blocks",
        "followers lack the rollback blocks and read what was taken back",
    ),
    Mutant(
        "what a savepoint keeps is not known",
        Text("cls(kept=savepointed_files(body, path))", "cls()"),
        f"{_CHANGED}[COPY_ON_WRITE-6]",
        "the table cannot be restored to the savepoint",
    ),
    Mutant(
        "a replace commit is not known to have replaced file groups",
        Text(
            "            commit.replaced,\n            schema=",
            "            {},\n            schema=",
        ),
        f"{_CHANGED}[MERGE_ON_READ-9]",
        "P1: overwritten rows are back",
    ),
]

MUTANTS = [
    *FILE_CHANGES,
    *QUERIES,
    *BUCKET_RESCALES,
    *DELTA,
    *CATALOGS,
    *CHANGES,
    *CHANGES_BY_FILTER,
    *SOURCE_MERGES,
    *EXPRESSIONS,
    *INSPECTION,
    *CLUSTERINGS,
    *RECORD_INDEXES,
    *RECORD_LOOKUPS,
    *SENT_TO_TASKS,
    *OTHER_ENGINES,
    *COPIES,
    *LAYOUT_2,
    *VIRTUAL_KEYS,
    *ARCHIVE_CHANGES,
    *COMPACTIONS,
    *ARCHIVES,
    *CLEANS,
    *TYPES,
    *HFILES,
    *SPARK,
    *TIMES_AND_NAMES,
    *NAMES_AND_DELETIONS,
    *FOLLOWERS,
    *METADATA_TABLES,
    *COMMITS,
    *REPLAYS,
    *RECOVERIES,
    *LOGGED_ROWS,
    *LOCATED_RECORDS,
    *WRITTEN_POSITIONS,
    *BASE_ROWS,
    *MERGES,
    *STORAGE,
    *HUDIS_LOCK,
    *LOCKS_AND_TURNS,
    *READS,
    *UNDOING,
    *TEXTS,
]
