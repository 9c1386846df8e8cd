"""Bugs to plant: one change of the package each, the test that finds it, and what it breaks.

A test that passes with its bug planted is a bug of the test. Where the code has moved on, so that
an old text is not found any more, find the place where the bug would be made today.
"""

from __future__ import annotations

from dataclasses import dataclass

COMMIT = "tests/unit/sink/commit/test_commit.py"
DELETIONS = "tests/faults/regressions/test_names_and_deletions.py"
STOPPED = "tests/faults/test_stopped.py"
RECOVERY = "tests/unit/transaction/test_recovery.py"
ROLLBACK = "tests/unit/transaction/test_rollback.py"
SPANS = "tests/unit/sink/test_several_batches.py"
TASKS = "tests/unit/sink/test_tasks.py"
LISTS = "tests/faults/regressions/test_texts_and_lists.py"
CONNECTIONS = "tests/faults/regressions/test_connections_and_secrets.py"
USUAL = "tests/unit/config/test_usual_options.py"
IN_THE_HAND = "tests/faults/regressions/test_library_in_the_hand.py"
RETRYING = "tests/unit/storage/test_retrying.py"
OVERTAKEN = "tests/faults/regressions/test_overtaken.py"
IDENTITY = "tests/faults/regressions/test_replay_identity.py"
LATE = "tests/faults/regressions/test_late_drivers_and_tasks.py"
MERGER = "tests/unit/record/merge/test_rule.py"
MERGE_RULE = "tests/faults/regressions/test_merge_rule.py"


@dataclass(frozen=True)
class Mutant:
    """A bug.

    Parameters
    ----------
    name : str
        What is done wrong.
    old, new : str
        The text that is replaced, which occurs once in the package, and what takes its place.
    test : str
        A test that has to fail.
    breaks : str
        The promise, or what happens to a user.
    """

    name: str
    old: str
    new: str
    test: str
    breaks: str


_BOMBS = "tests/hostile/test_bombs.py"
_TYPES = "tests/faults/regressions/test_types_and_schemas.py"
TYPES = [
    Mutant(
        "a key column may become floating point",
        'check_exact(stored, arriving, properties.record_key_fields, "record key")',
        "pass",
        f"{_TYPES}::test_a_key_column_was_widened_and_every_key_another",
        "P8: key 1 becomes 1.0, and every upsert an insert",
    ),
    Mutant(
        "names are compared within a batch alone",
        'held = {*META_COLUMNS, *_paths(list(table), "")}',
        "held: set[str] = set()",
        f"{_TYPES}::test_columns_that_differ_in_case_alone_were_stored",
        "P24: Spark and Hive cannot read the table",
    ),
    Mutant(
        "a committed base file is not trusted",
        "replace(base, checksum=known, trusted=True)",
        "replace(base, checksum=known)",
        f"{_BOMBS}::test_what_shrinks_a_thousandfold_is_read_and_written",
        "P3: committed rows that cannot be read any more",
    ),
    Mutant(
        "a committed log block is not trusted",
        "return known or not self.verify",
        "return False",
        f"{_BOMBS}::test_what_shrinks_a_thousandfold_is_read_and_written",
        "P3: committed rows that cannot be read any more",
    ),
    Mutant(
        "whatever a footer claims is believed",
        "if trusted or sum(",
        "if not trusted or sum(",
        f"{_BOMBS}::test_a_bomb_is_refused_before_it_bursts",
        "P22: a small file that takes all memory",
    ),
    Mutant(
        "text is not looked at before it is stored",
        "        if _is_to_be_checked(column.type):\n",
        "        if False:\n",
        f"{_TYPES}::test_text_that_is_none_was_committed_and_never_read_again",
        "P3: committed, and every read fails from then on",
    ),
    Mutant(
        "text within lists is not looked at",
        '_check(array.flatten(), f"{path}.element")',
        "pass",
        f"{_TYPES}::test_text_that_is_none_was_committed_and_never_read_again",
        "P3: committed, and every read fails from then on",
    ),
    Mutant(
        "a batch of whatever size is taken whole",
        "chain.from_iterable(cut(part, _PART_BYTES) for part in batches)",
        "batches",
        f"{_TYPES}::test_a_batch_of_more_text_than_an_array_holds_was_refused",
        "P23: rows are refused that the table can hold",
    ),
    Mutant(
        "milliseconds of a table are taken for microseconds",
        '(Kind.LONG, "timestamp-millis"): _UTC_MILLIS',
        '(Kind.LONG, "timestamp-millis"): UTC_MICROS',
        f"{_TYPES}::test_a_key_of_milliseconds_was_taken_for_one_of_microseconds",
        "P8: each row of another engine's table has a second key",
    ),
    Mutant(
        "a batch changes the unit of a table's column",
        "normalise_schema(user, stored)",
        "normalise_schema(user)",
        f"{_TYPES}::test_a_key_of_milliseconds_was_taken_for_one_of_microseconds",
        "P23: a batch of the other unit is refused",
    ),
]
"""Of the types, names and bytes of columns."""

NAMES_AND_DELETIONS = [
    Mutant(
        "a write token holds the numbers of the task alone",
        'f"{self.batch_attempt} {self.task_attempt} {version}"',
        'f"{self.task_attempt} {version}"',
        f"{DELETIONS}::test_a_writer_that_goes_on_deletes_the_log_file_of_the_one_that_took_over",
        "P3: a stopped writer that goes on deletes a committed log file",
    ),
    Mutant(
        "all log files of an attempt have one token",
        "{self.task_attempt} {version}",
        "{self.task_attempt}",
        "tests/unit/handles/test_handles.py::test_no_other_attempt_has_a_name",
        "P3: Hudi on the JVM gives its next log file the name of one that is rolled back",
    ),
    Mutant(
        "a rollback deletes log files whose names others may take",
        "    return bool(marked_by(storage, marker))\n",
        "    return True\n",
        f"{DELETIONS}::test_a_log_file_of_an_earlier_release_stays",
        "P3: a rollback that was stopped deletes a committed log file",
    ),
    Mutant(
        "a rollback deletes another engine's log files",
        "whole |= {path for path in listed if _is_named_after(path, time)}",
        "whole |= {p for p in listed if _size_if_written_by(storage, p, time)}",
        f"{DELETIONS}::test_a_log_file_whose_name_another_engine_may_take_stays",
        "P3: a rollback that was stopped deletes a committed log file",
    ),
    Mutant(
        "a commit deletes what another driver of its instant has written",
        "        if marked_by(storage, marker) == attempt:\n",
        "        if True:\n",
        f"{DELETIONS}::test_a_driver_left_behind_deletes_what_its_successor_commits_in_the_same_instant",
        "P3: a stopped driver that goes on deletes committed files",
    ),
    Mutant(
        "a failed write removes whatever has its name",
        "        if os.path.samestat(os.lstat(full), os.fstat(descriptor)):\n",
        "        if True:\n",
        f"{DELETIONS}::test_the_clean_up_of_a_failed_write_takes_the_file_that_has_its_name_by_now",
        "P3: another writer's file is removed",
    ),
    Mutant(
        "a late task does not see that its instant is complete",
        "        storage.read(instant_path(instant.at(State.COMPLETED)))\n    except",
        "        return None\n    except",
        f"{STOPPED}::test_further_processes_are_stopped_and_go_on"
        "[a driver left behind in an instant of several batches]",
        "P16: readers that list folders see two base files of a slice",
    ),
    Mutant(
        "a late commit leaves the files that it merged",
        "    with no_late_files(batch, context):\n",
        "    if True:\n",
        f"{STOPPED}::test_further_processes_are_stopped_and_go_on[a writer, cow]",
        "P16: readers that list folders see rows that were rolled back",
    ),
    Mutant(
        "a read needs log files that were never committed",
        "            if was_never_committed(self.view, log):\n",
        "            if False:\n",
        f"{DELETIONS}::test_a_read_that_was_planned_before_a_rollback_needs_what_was_never_committed",
        "a read fails for a file of a failed write",
    ),
    Mutant(
        "a read does without a log file that is gone",
        "            if was_never_committed(self.view, log):\n",
        "            if True:\n",
        f"{DELETIONS}::test_a_read_still_needs_what_is_committed",
        "P3: committed rows are missing, and nobody is told",
    ),
    Mutant(
        "a log file that is torn is not looked at again",
        "                if self.view.storage.read(log.path) == data:\n",
        "                if True:\n",
        f"{DELETIONS}::test_a_log_file_of_an_old_slice_is_read_again_if_it_was_torn",
        "a read fails for a file that is whole by now",
    ),
    Mutant(
        "a read does without log files that were cleaned",
        "    return not any(instant",
        "    return True or any(instant",
        f"{DELETIONS}::test_a_read_of_a_slice_that_began_before_the_timeline",
        "P3: committed rows are missing, and nobody is told",
    ),
]
"""Of names that two attempts share, and of what is deleted by name."""

TIMES_AND_NAMES = [
    Mutant(
        "an instant time is claimed by a put that overwrites",
        "        storage.put_if_absent(path, owner.encode())\n",
        "        storage.replace(path, owner.encode())\n",
        "tests/faults/test_promises.py::test_two_writers_never_share_an_instant",
        "P5: two writers under one instant time",
    ),
    Mutant(
        "whoever finds an instant time claimed joins it",
        "return storage.read(path) == owner.encode()",
        "return True",
        "tests/faults/test_promises.py::test_two_writers_never_share_an_instant",
        "P5: the files of one batch are committed by another",
    ),
    Mutant(
        "a rollback takes its time without a claim",
        '            taken = claim(table.storage, time, f"rollback of {target}")\n',
        "            taken = True\n",
        "tests/unit/sink/test_several_writers.py::test_a_rollback_shares_no_time_with_a_commit",
        "P5: a rollback and a commit at one time",
    ),
    Mutant(
        "the timeline is not looked at after a claim",
        "if taken and not load_timeline(table.storage).has_other(rollback):",
        "if taken:",
        "tests/faults/test_promises.py::test_a_rollback_takes_no_time_that_was_used_meanwhile",
        "P5: two actions at one time",
    ),
    Mutant(
        "a batch opens its instant at a time that another action has",
        " or _is_anothers(batch, instant):\n",
        ":\n",
        "tests/faults/regressions/test_regressions.py::test_two_processes_may_meet",
        "P5: two actions at one time; who rolls one back deletes the files of the other",
    ),
    Mutant(
        "a micro-batch leaves the open instant of those before it",
        "    if batch.timeline.prepared is not None:\n",
        "    if False:\n",
        "tests/faults/regressions/test_late_drivers_and_tasks.py::test_a_batch_joined_an_instant_that_had_become_anothers",
        "P3: rows of earlier micro-batches are not committed",
    ),
    Mutant(
        "instant times come from the clock alone",
        "return now if latest is None or now > padded(latest) else following(latest)",
        "return now",
        "tests/unit/timeline/test_instant_time.py::test_times_increase_whatever_the_clock_does",
        "P5: a clock set back makes a commit older than what it follows",
    ),
    Mutant(
        "times of old tables are compared without their milliseconds",
        'return time if len(time) == 17 else f"{time}999"',
        "return time",
        "tests/unit/timeline/test_timeline.py::test_an_old_time_compares_with_milliseconds",
        "rows of an upgraded table vanish",
    ),
    Mutant(
        "the attempt is missing from file names",
        'task_attempt=f"{task.stage}-{task.attempt}"',
        'task_attempt=f"{task.stage}"',
        f"{COMMIT}::test_a_file_of_a_lost_attempt_is_deleted_by_the_commit",
        "P16: a second attempt of a task meets the file of the first",
    ),
    Mutant(
        "tasks of a later run of an open instant take the names of the first",
        "        batch_attempt=batch.attempt,\n",
        "        batch_attempt=batch.owner,\n",
        "tests/faults/test_promises.py::test_an_open_instant_goes_on_in_an_application_that_counts_anew",
        "P2: the replay of a batch meets files of the run that died",
    ),
    Mutant(
        "a bucket's file id is drawn",
        '    return f"{bucket_prefix(bucket)}-0000-0000-0000-{generation:012d}-0"\n',
        '    import uuid\n\n    return f"{bucket_prefix(bucket)}-{str(uuid.uuid4())[9:]}-0"\n',
        "tests/faults/test_promises.py::test_a_bucket_is_one_group_whoever_begins_it",
        "P7: two file groups for one bucket (Hudi #19907)",
    ),
    Mutant(
        "a group that replaces another takes over its id",
        "        taken = self._view.replaced_ids(key.partition_path) | live\n",
        "        taken: set[str] = set()\n",
        "tests/unit/test_operations.py::test_an_overwrite_of_partitions_leaves_the_others",
        "new rows are hidden with the group that they replace (Hudi #19793)",
    ),
    Mutant(
        "new file ids are made without the partition",
        "identity = (context.instant_time, partition_path, str(context.writer), str(number))",
        "identity = (context.instant_time, str(context.writer), str(number))",
        "tests/faults/test_promises.py::test_file_ids_differ_between_partitions",
        "one id in two partitions (Hudi #19517)",
    ),
]

COMMITS = [
    Mutant(
        "the completed file is put over what is there",
        "        storage.put_if_absent(path, body)\n    except StorageError",
        "        storage.replace(path, body)\n    except StorageError",
        "tests/faults/test_promises.py::test_a_completed_file_never_changes",
        "P6: a commit changes after readers have seen it",
    ),
    Mutant(
        "a commit names none of its files",
        "return CommitMetadata(stats, batch.operation.value.upper(), extra, replaced)",
        "return CommitMetadata((), batch.operation.value.upper(), extra, replaced)",
        f"{COMMIT}::test_nothing_is_visible_before_the_commit",
        "P3: committed rows are not there",
    ),
    Mutant(
        "an error of the completing put is passed over",
        "                raise error from None\n",
        "                return True\n",
        f"{COMMIT}::test_a_commit_that_was_decided_and_not_written_down_is_so_by_the_next_batch",
        "P1: Spark moves past a batch that is not there",
    ),
    Mutant(
        "a commit without an answer counts as failed",
        "if isinstance(unreadable, NotFoundError) and not isinstance(error, UnavailableError):",
        "if True:",
        "tests/unit/storage/test_decisive_put.py::test_a_put_that_may_still_arrive_is_neither",
        "P4: unknown is taken for failed",
    ),
    Mutant(
        "a put that may still arrive counts as failed",
        " and not isinstance(error, UnavailableError):",
        ":",
        "tests/unit/storage/test_decisive_put.py::test_a_put_that_may_still_arrive_is_neither",
        "P4: unknown is taken for failed",
    ),
    Mutant(
        "a commit of somebody else's under the same time counts as ours",
        "            return storage.read(path) == body\n",
        "            return bool(storage.read(path))\n",
        "tests/faults/test_promises.py::test_a_completed_file_never_changes",
        "P3: success is told for rows that are not there",
    ),
    Mutant(
        "tasks that did not report are passed over",
        "        if len(reported) < len(messages):\n",
        "        if False:\n",
        f"{COMMIT}::test_a_task_that_did_not_report_stops_the_commit",
        "P1: a part of a batch is committed",
    ),
    Mutant(
        "two attempts of a task are both committed",
        "    _check_no_group_twice(statuses, staged)\n",
        "",
        f"{TASKS}::test_two_base_files_of_one_group_are_refused",
        "P2: rows come twice, or a slice has two base files",
    ),
    Mutant(
        "files of lost attempts stay",
        "attempt:\n            storage.delete(path)\n",
        "attempt:\n            pass\n",
        f"{DELETIONS}::test_a_file_of_a_lost_attempt_is_seen_by_readers_that_list_folders",
        "P16: readers that list folders see rows twice",
    ),
    Mutant(
        "conflicts are looked for on the timeline of the batch's start",
        "    check_groups(batch, instant.time, timeline, statuses, replaced)\n",
        "    check_groups(batch, instant.time, batch.timeline, statuses, replaced)\n",
        f"{COMMIT}::test_a_commit_in_between_on_the_same_group_is_a_conflict",
        "P3: an update in between is lost",
    ),
    Mutant(
        "what came into a replaced partition meanwhile is no conflict",
        " or [g for g in others if g.partition_path in replaced]",
        "",
        "tests/faults/test_promises.py::test_what_came_into_a_replaced_partition_is_a_conflict",
        "P3: an overwrite takes rows away that nobody told it of, or leaves them",
    ),
    Mutant(
        "a batch commits although its instant was rolled back",
        "    if is_anothers or is_undone(storage, timeline, instant.time):\n",
        "    if False:\n",
        f"{COMMIT}::test_a_commit_after_a_rollback_is_refused",
        "P1: a commit names files that are gone",
    ),
    Mutant(
        "abort deletes the files of the batch",
        "            if message and message.instant_time is not None"
        " and not is_complete(message):\n",
        "            for status in message.statuses if message else ():\n"
        "                self.storage.delete(status.stat.path)\n"
        "            if message and message.instant_time is not None"
        " and not is_complete(message):\n",
        f"{COMMIT}::test_an_abort_after_success_takes_nothing_away",
        "P3, P4: a commit whose answer was lost loses its rows",
    ),
    Mutant(
        "a failed flush is not waited for",
        "            flush.result()\n",
        "",
        "tests/unit/sink/test_memory.py"
        "::test_a_buffer_is_held_until_its_flush_succeeded_and_a_failure_fails_the_task",
        "P1: a commit before its data",
    ),
    Mutant(
        "the marker comes after its file",
        "    with suppress(AlreadyExistsError):\n"
        "        context.storage.put_if_absent(marker, context.batch_attempt.encode())\n"
        "    context.files.append(path)\n"
        "    with context.storage.open_output(path) as file, HashingOutput(file) as output:\n"
        "        yield output\n",
        "    with context.storage.open_output(path) as file, HashingOutput(file) as output:\n"
        "        yield output\n"
        "    with suppress(AlreadyExistsError):\n"
        "        context.storage.put_if_absent(marker, context.batch_attempt.encode())\n",
        "tests/faults/test_promises.py::test_a_file_without_a_marker_never_is",
        "P11: a file that no rollback finds",
    ),
]

REPLAYS = [
    Mutant(
        "the replay check looks at the newest commit alone",
        "[found for time in times if (found := timeline.commit_at(time))]",
        "[]",
        f"{COMMIT}::test_a_batch_that_an_earlier_instant_committed_later_is_known",
        "P2: a batch comes twice if another commit lies between",
    ),
    Mutant(
        "the replay check looks at the batch's number without its query",
        '_number(self.committed.get(self.name_of(batch) or "", ""))',
        "max(map(_number, self.committed.values()), default=-1)",
        "tests/unit/sink/test_replay_guard.py::test_a_batch_is_held_up_to_the_highest_of_its_query",
        "P2: batches of a second query are dropped",
    ),
    Mutant(
        "a commit carries its own query alone",
        "guard = guard.with_batch(batch_id, total_digest(messages))",
        "guard = ReplayGuard().with_batch(batch_id, total_digest(messages))",
        f"{COMMIT}::test_every_commit_carries_all_queries",
        "P2: another writer's commit, or archiving, makes the table forget a batch",
    ),
    Mutant(
        "batch numbers are compared as text",
        "return batch.batch_id <= self.highest(batch)",
        'return str(batch.batch_id) <= self.committed.get(batch.query_id, "")',
        "tests/unit/sink/test_replay_guard.py::test_a_batch_is_held_up_to_the_highest_of_its_query",
        "P2: batch 10 is dropped after batch 9",
    ),
    Mutant(
        "a committed batch is written again",
        "    if batch_id is not None and batch.guard.holds(batch_id):\n",
        "    if False:\n",
        f"{COMMIT}::test_a_committed_batch_is_drained_and_writes_nothing",
        "P2: a replayed batch leaves an instant behind",
    ),
    Mutant(
        "a batch that was committed meanwhile is committed again",
        "        if guard.holds(message.batch_id):\n",
        "        if guard is None:\n",
        "tests/unit/sink/commit/test_commit.py::test_a_batch_that_was_begun_twice_commits_once",
        "P2: a driver left behind and its successor both commit",
    ),
    Mutant(
        "an instant of several batches forgets the earlier ones",
        "        record = joined(read_commit(storage, before), record, commit_path(before))\n",
        "        assert record\n",
        "tests/unit/sink/test_several_batches.py::test_rows_appear_with_the_last_batch",
        "P3: rows of earlier micro-batches are gone",
    ),
    Mutant(
        "a number whose digest is not kept is taken for done",
        "    if batch_id.batch_id in kept and kept[",
        "    if batch_id.batch_id not in kept or kept[",
        f"{IDENTITY}::test_a_new_checkpoint_under_an_old_name_was_passed_over",
        "P2: rows of a batch that was never written are lost in silence",
    ),
    Mutant(
        "the digest of keyed rows covers their keys alone",
        "            total += cls(piece.num_rows, checksum, row_sums(piece, hashes))",
        "            total += cls(piece.num_rows, checksum)",
        f"{IDENTITY}::test_other_values_under_the_same_keys_were_passed_over",
        "P2: corrected values under a number that is taken are lost in silence",
    ),
    Mutant(
        "values count without the key of their row",
        "    odd = keys | np.uint64(1)",
        "    odd = np.ones_like(keys)",
        "tests/unit/sink/replay/test_replay.py::test_values_that_have_changed_places_are_other_rows",
        "P2: other rows are taken for those that were committed",
    ),
    Mutant(
        "a commit leaves a writer out that is not put aside",
        "    put_aside(storage, left_out)",
        "    pass",
        f"{IDENTITY}::test_a_writer_that_was_put_aside_comes_back_and_goes_again",
        "P2: the table forgets a writer, and its batch comes twice",
    ),
    Mutant(
        "a writer that was put aside is not looked for by the tasks",
        "    guard = recall(batch.table.storage, batch.guard, batch_id)",
        "    guard = batch.guard",
        f"{IDENTITY}::test_commits_grew_with_every_writer_that_ever_wrote",
        "P2: a batch comes twice once its writer is put aside",
    ),
    Mutant(
        "commits carry all writers that ever wrote",
        "    guard, left_out = guard.parted()",
        "    left_out: list[ReplayGuard] = []",
        f"{IDENTITY}::test_commits_grew_with_every_writer_that_ever_wrote",
        "P29: commits grow without end",
    ),
    Mutant(
        "a stream may begin anywhere",
        "    is_first = batch_id == batch.given_id or batch_id.batch_id == 0",
        "    is_first = True",
        f"{IDENTITY}::test_a_stream_lost_the_rows_of_a_table_that_was_deleted",
        "P2: a stream goes on in an empty table, and earlier rows are lost in silence",
    ),
    Mutant(
        "first batches without rows leave no mark",
        "            mark(self.storage, batch_id)",
        "            pass",
        f"{IDENTITY}::test_a_stream_whose_first_batches_had_no_rows_goes_on",
        "a stream that began with nothing is stopped at its first rows",
    ),
    Mutant(
        "what an earlier release stored under the name alone is not looked at",
        "for n in (batch.query_id, batch.formerly or batch.query_id) if",
        "for n in (batch.query_id,) if",
        f"{IDENTITY}::test_batches_stored_under_the_name_alone_are_recognised_with_the_checkpoint",
        "P2: the last batch before an upgrade comes twice",
    ),
]

RECOVERIES = [
    Mutant(
        "a rollback trusts the timeline that it was given",
        "    if not timeline.is_pending(instant.time):\n        return\n",
        "",
        f"{ROLLBACK}::test_an_instant_that_is_gone_is_left_alone",
        "P3: a completed instant is rolled back",
    ),
    Mutant(
        "a rollback does not look again once it is on the timeline",
        "    if load_timeline(table.storage).commit_at(instant.time) is not None:\n",
        "    if False:\n",
        f"{ROLLBACK}::test_an_instant_that_completes_meanwhile_is_left_alone",
        "P3: a completed instant is rolled back",
    ),
    Mutant(
        "the rolled back instant leaves the timeline before its files are gone",
        '    _put_again(table, rollback.at(State.INFLIGHT), b"")\n',
        '    _put_again(table, rollback.at(State.INFLIGHT), b"")\n'
        "    storage.delete(instant_path(instant.at(State.INFLIGHT)))\n"
        "    storage.delete(instant_path(instant.at(State.REQUESTED)))\n"
        "    storage.delete(temp_folder(instant.time))\n",
        f"{RECOVERY}::test_recovery_may_be_killed_at_any_operation",
        "P11: files of a failed write stay",
    ),
    Mutant(
        "another engine's instant is completed",
        "    alone = is_ours(table, instant) and not _is_of_several(table, instant)\n",
        "    alone = True\n",
        "tests/unit/transaction/test_recovery.py::test_another_engines_instant_is_never_committed",
        "P1: what another engine had not finished becomes visible",
    ),
    Mutant(
        "a damaged manifest is committed",
        "        CommitMetadata.from_bytes(body, path)\n",
        "",
        f"{RECOVERY}::test_a_damaged_manifest_is_rolled_back",
        "P6: a completed file that cannot be read",
    ),
    Mutant(
        "a whole manifest is rolled back",
        "    decide(table, instant, clock, may_complete=may_complete)\n",
        "    decide(table, instant, clock)\n",
        "tests/unit/transaction/test_recovery.py::test_a_whole_manifest_is_committed",
        "P3: micro-batches that Spark has moved past are lost",
    ),
    Mutant(
        "the sweep deletes what a commit names",
        " if not (is_commit and view.names(time, p))}",
        "}",
        "tests/unit/transaction/test_sweep.py::test_a_file_that_its_commit_does_not_name_goes",
        "P3: committed rows are deleted",
    ),
    Mutant(
        "the sweep takes a pending instant for one that is gone",
        "not is_commit and (time in known or view.is_committed(time))",
        "not is_commit and view.is_committed(time)",
        "tests/unit/transaction/test_sweep.py::test_files_of_a_pending_instant_stay",
        "P1: files of a write that goes on are deleted",
    ),
]

READS = [
    Mutant(
        "the filter in front of the state forgets deleted keys",
        "keys.live.hashes.tolist(), keys.dead.hashes.tolist()",
        "keys.live.hashes.tolist()",
        "tests/unit/index/test_front_filter.py"
        "::test_stored_keys_pass_deleted_ones_too_and_of_new_ones_few_do",
        "P8: what comes after a delete begins another file group",
    ),
    Mutant(
        "the filter in front of the state is asked about slices that it was not told of",
        "if place not in self._places}",
        "if not self._places}",
        "tests/unit/index/test_front_filter.py::test_a_full_filter_is_made_anew_of_what_there_is",
        "P8: a stored key is inserted again",
    ),
    Mutant(
        "a reader believes the folder instead of the commit",
        "        return instant is None or path in commit_files(self.storage, instant).named\n",
        "        return True\n",
        f"{COMMIT}::test_a_file_of_a_late_task_is_invisible",
        "P16: late files are read",
    ),
    Mutant(
        "letter case of bucket rules is left to the engine",
        "        elif ignoring_case and other in ascii_letters:\n"
        '            yield f"[{other}{other.swapcase()}]"\n',
        "        elif ignoring_case:\n"
        '            yield f"(?i:{other})" if other.isalpha() else other\n',
        "tests/unit/config/test_bucket_rules.py"
        "::test_a_partition_has_the_number_of_buckets_that_hudi_gives_it",
        "P21: a key's rows in two buckets",
    ),
    Mutant(
        "of a timeline that was loaded before only what is new is taken in",
        "for name in known ^ names if",
        "for name in names - known if",
        "tests/unit/timeline/test_timeline.py"
        "::test_what_changes_is_taken_in_as_if_all_were_loaded_anew",
        "P14: rows of what was rolled back are read",
    ),
    Mutant(
        "instants of the second that changed are taken over from before",
        "    since = min(changed)[:14]\n",
        "    since = max(changed)[:14]\n",
        "tests/unit/timeline/test_timeline.py"
        "::test_what_changes_is_taken_in_as_if_all_were_loaded_anew",
        "P14: a commit is not seen",
    ),
    Mutant(
        "the commit begins a merge-on-read group as it begins a copy-on-write one",
        "    if latest is None and batch.table.properties.table_type is TableType.MERGE_ON_READ:\n",
        "    if False:\n",
        "tests/faults/regressions/test_first_write.py"
        "::test_a_delete_of_a_new_group_stays_one_for_older_rows",
        "P11: a deleted row is back by an older one",
    ),
    Mutant(
        "what a process knows of commits outlives their rollback",
        "        live = _LiveFiles()\n",
        "        pass\n",
        "tests/unit/table/test_named_files.py"
        "::test_what_was_rolled_back_or_archived_meanwhile_is_not_asked_for",
        "P14: a healthy table is refused",
    ),
    Mutant(
        "a replacement hides file groups after it was archived",
        "            if any(padded(i.time) >= first for i in self._replaced.get(group, ())):\n",
        "            if group in self._replaced:\n",
        "tests/unit/table/test_named_files.py"
        "::test_a_file_group_whose_replacement_was_archived_may_begin_anew",
        "P14: a lost file is not missed",
    ),
    Mutant(
        "a log file whose blocks name no commit is not compared",
        "        return newest_commit_naming(self.storage, self.timeline, log.path, "
        "log.name.base_instant)\n",
        "        return None\n",
        "tests/faults/regressions/test_growth.py"
        "::test_a_damaged_log_file_is_looked_for_in_all_commits",
        "P13: damage is told as something else, or passes",
    ),
    Mutant(
        "a reader lists folders again after it has seen that no file is missing",
        "        yield from view.slices_among(files)\n",
        "        for path in sorted({file.folder for file in files}):\n"
        "            yield from view.latest_slices(path)\n",
        "tests/faults/test_anomalies.py::test_a_reader_gives_the_rows_or_an_error",
        "P17: fewer rows, and no error",
    ),
    Mutant(
        "blocks of instants that are not committed are read",
        "return self.view.is_committed(instant) and self.view.names(instant, log.path)",
        "return self.view.names(instant, log.path)",
        "tests/unit/reader/test_snapshot.py"
        "::test_a_block_of_an_instant_that_is_not_committed_does_not_count",
        "P1: rows of a failed batch are read",
    ),
    Mutant(
        "log files are merged in the order of their names",
        "    return log.name.version, log.name.write_token\n",
        "    return 0, str(log.name)\n",
        "tests/faults/test_promises.py::test_eleven_log_files_are_merged_in_their_order",
        "an older row wins from the tenth log file on",
    ),
    Mutant(
        "a damaged block is skipped",
        "            return list(read_blocks(data, log.path))\n",
        "            return list(read_blocks(data, log.path, lenient=True))\n",
        "tests/faults/test_promises.py::test_a_damaged_block_is_never_skipped",
        "P17: rows are lost without a word",
    ),
    Mutant(
        "checksums are not compared",
        "    if found != expected:\n",
        "    if False:\n",
        "tests/hostile/test_byte_sweep.py::test_damage_is_named_with_both_checksums",
        "P17: a flipped byte is other rows",
    ),
    Mutant(
        "the length of a block is trusted",
        "        if not 0 <= size <= self._end - self._at:\n",
        "        if size < 0:\n",
        "tests/unit/formats/log/test_log_block.py::test_a_block_cut_anywhere_is_corrupt",
        "P17, P22: half a block is read, or memory for a forged length is taken",
    ),
]

MERGES = [
    Mutant(
        "of equal ordering values the earlier wins",
        "codes[len(old_at) :] >= codes[: len(old_at)]",
        "codes[len(old_at) :] > codes[: len(old_at)]",
        f"{MERGER}::test_merge_decides_key_by_key",
        "P10: the same rows give another table",
    ),
    Mutant(
        "the second ordering field is not looked at",
        "    for rank in ranks[1:]:\n",
        "    for rank in ranks[:0]:\n",
        "tests/unit/test_several_ordering_fields.py"
        "::test_the_first_field_decides_and_the_next_where_it_ties",
        "an older row wins",
    ),
    Mutant(
        "a delete wins over a later row",
        "        wins |= unconditional(new.ordering, new.deleted)[new_at]\n",
        "        wins |= new.deleted[new_at]\n",
        "tests/faults/test_promises.py::test_a_late_delete_takes_no_newer_row_away",
        "a late delete takes a newer row away",
    ),
    Mutant(
        "a null integer is as high as 0",
        "    return _rank_codes(numbers) if numbers.null_count else _to_numpy(numbers)\n",
        "    return _to_numpy(pc.fill_null(numbers, 0))\n",
        f"{MERGE_RULE}::test_a_null_is_lower_than_any_value",
        "a null takes the place of a value",
    ),
    Mutant(
        "a null text takes part as the later one",
        "    found = deleted.copy()\n    if not found.any():\n        return found\n",
        "    found = np.ones_like(deleted)\n",
        f"{MERGE_RULE}::test_a_null_is_lower_than_any_value",
        "which row wins depends on how rows are cut into batches",
    ),
    Mutant(
        "a null beside another ordering field is stored as 0 in a delete",
        "zigzag(np.array([_LOWEST[branch]]))",
        "zigzag(np.array([0]))",
        "tests/unit/test_several_ordering_fields.py"
        "::test_a_null_beside_integers_is_lower_than_they_are",
        "a delete takes a newer row away once it is in a log file",
    ),
    Mutant(
        "a copy-on-write table forgets that a row came after a delete",
        "        if self.applies_deletes and new.replacing is not None:\n",
        "        if False:\n",
        f"{MERGE_RULE}::test_a_row_after_a_delete_in_its_batch_was_merged_into_the_deleted_one",
        "a deleted row is back, in one batch and not in two",
    ),
    Mutant(
        "a merge-on-read table applies deletes as a copy-on-write table does",
        "applies_deletes = properties.table_type is TableType.COPY_ON_WRITE\n",
        "applies_deletes = True\n",
        f"{MERGE_RULE}::test_a_deleted_row_of_a_base_file_is_back_as_in_hudi",
        "a reader here finds other rows than Hudi",
    ),
    Mutant(
        "a log does not tell that a row came after a delete",
        "        if records.replacing is not None:\n",
        "        if False:\n",
        f"{MERGE_RULE}::test_a_batch_forgot_that_a_row_came_after_a_delete",
        "a row loses against one that was deleted before it",
    ),
    Mutant(
        "a second delete makes an unconditional one conditional",
        "    return last, after & (positions < first_live[keys])\n",
        "    return last, after & False\n",
        "tests/golden/test_merge_histories.py::test_rows_win_as_in_hudi",
        "a deleted row is back",
    ),
    Mutant(
        "partition values are not escaped",
        "        encoded = escape(text) if text and url_encode else text\n",
        "        encoded = text\n",
        "tests/unit/record/keys/test_partition_path.py::test_styles",
        "P20: two values share a folder",
    ),
    Mutant(
        "a partition path may go up",
        '        if not component or component.startswith(".") or _UNUSABLE.search(component):\n',
        "        if not component or _UNUSABLE.search(component):\n",
        "tests/unit/record/keys/test_partition_path.py::test_paths_out_of_the_table_are_refused",
        "P20: a row writes outside the table",
    ),
]

STORAGE = [
    Mutant(
        "put-if-absent on disk is a rename",
        "_put(full, data, _link)",
        "_put(full, data, os.replace)",
        "tests/contract/storage/test_storage_contract.py::test_one_of_many_threads_wins[local]",
        "P5, P6: two processes take one name",
    ),
    Mutant(
        "the name of a file appears before its content is durable",
        "            file.flush()\n            os.fsync(descriptor)\n",
        "            file.flush()\n",
        "tests/unit/storage/test_local.py"
        "::test_content_is_synced_before_its_name_and_its_folder_after",
        "P3: an empty commit after a power cut",
    ),
    Mutant(
        "a put returns before its name is durable",
        "        raise\n    _sync_folder(os.path.dirname(full))\n",
        "        raise\n",
        "tests/faults/test_power_loss.py::test_power_may_be_lost_at_any_moment[first batch, cow]",
        "P3: a commit that has returned is gone after a power cut",
    ),
    Mutant(
        "the files of a rolled-back write may come back",
        "                    os.unlink(full)\n"
        "                    _sync_folder(os.path.dirname(full))\n",
        "                    os.unlink(full)\n",
        "tests/faults/test_power_loss.py::test_power_may_be_lost_at_any_moment[rollback, cow]",
        "P16: readers that list folders see them",
    ),
    Mutant(
        "the retry of a put takes a taken name for its own",
        "                if not (maybe_done and self._holds(path, data)):\n",
        "                if not maybe_done:\n",
        f"{RETRYING}::test_a_put_whose_answer_is_lost_may_be_somebody_elses",
        "P5: two writers win",
    ),
    Mutant(
        "the retry of a put loses against its own first try",
        "                if not (maybe_done and self._holds(path, data)):\n"
        "                    raise\n",
        "                raise\n",
        f"{RETRYING}::test_a_put_whose_answer_is_lost_is_ours",
        "P4: a commit that took effect is told as failed (Hudi #14373)",
    ),
    Mutant(
        "an unknown outcome is told as refused",
        "                if maybe_done:  # it says nothing about the earlier try\n",
        "                if False:\n",
        f"{RETRYING}::test_a_later_refusal_does_not_settle_an_unknown_outcome",
        "P4: unknown is taken for failed",
    ),
    Mutant(
        "paths may leave the base path",
        '        if real != self.root and not real.startswith(self.root.rstrip("/") + "/"):\n',
        "        if False:\n",
        "tests/unit/storage/test_local.py::test_links_that_lead_outside_are_refused",
        "P20: files outside the table are written",
    ),
]

WRITERS = "tests/unit/sink/test_several_writers.py"
LOCKS_AND_TURNS = [
    Mutant(
        "a batch that waits for further ones takes no turn",
        "return exclusion.decide(Decision.PREPARE, instant, timeline)",
        "return True",
        f"{LATE}::test_a_batch_was_reported_as_written_that_another_driver_had_undone",
        "P3: Spark moves past a batch that was rolled back",
    ),
    Mutant(
        "a batch is committed that waits in another instant",
        "        check_held_by_no_other(batch, batch_id, instant.time, timeline)\n",
        "        pass\n",
        f"{LATE}::test_a_driver_with_another_number_of_batches_made_written_ones_void",
        "P2: the batches that wait with it are doubled, or lost",
    ),
    Mutant(
        "two instants with the same batch are both completed",
        "return max([mine, *known]) != mine",
        "return False",
        f"{LATE}::test_of_two_instants_with_the_same_batch_recovery_keeps_one",
        "P2: a batch's rows are there twice",
    ),
    Mutant(
        "a task opens an instant that was archived",
        "return _later(batch, time) if past else time",
        "return time",
        f"{LATE}::test_a_late_task_opened_an_archived_instant_again",
        "P3: the committed rows of the instant are hidden",
    ),
    Mutant(
        "an archived instant is rolled back as any other",
        "    if not timeline.starts_after(time):\n        return False\n",
        "    return False\n",
        f"{LATE}::test_a_rollback_of_an_archived_instant_hid_its_rows",
        "P3: the committed rows of the instant are hidden",
    ),
    Mutant(
        "a task takes the time of a rollback",
        "for other in (write, Action.ROLLBACK):",
        "for other in (write,):",
        f"{LATE}::test_a_task_took_the_time_of_a_rollback",
        "P5: two actions share a time",
    ),
    Mutant(
        "writers that undo one another are not told of the concurrency mode",
        "    if options.concurrency.is_shared:\n        return",
        "    if True:\n        return",
        f"{OVERTAKEN}::test_whoever_is_undone_by_another_writer_is_told_of_the_concurrency_mode",
        "two streams kill one another, and nothing says what they need",
    ),
    Mutant(
        "a storage error is told where the instant was rolled back",
        "                raise undone(batch, time) from error",
        "                pass",
        f"{OVERTAKEN}::test_a_storage_error_is_told_as_it_is_just_where_nobody_took_over",
        "a user reads 'no such file' where another writer is the reason",
    ),
    Mutant(
        "a conflict is never tried again",
        "    for number in range(retries):",
        "    for number in range(0):",
        f"{OVERTAKEN}::test_a_conflict_was_the_end_whatever_hudis_option_said",
        "writers die of their first conflict",
    ),
    Mutant(
        "a batch that lost a conflict keeps its instant alive",
        "            coordinator.abort([message])",
        "            pass",
        f"{OVERTAKEN}::test_a_conflict_was_the_end_whatever_hudis_option_said",
        "what was given up looks like a living writer's for ten minutes",
    ),
    Mutant(
        "a folder that is filled while it is deleted is an error",
        "        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):",
        "        if error.errno not in ():",
        f"{OVERTAKEN}::test_a_folder_that_is_filled_while_it_is_deleted_was_an_error",
        "a writer dies of 'Directory not empty' beside another one",
    ),
    Mutant(
        "a writer is dead as soon as nobody looks",
        "if age_ms < timeout_ms}",
        "if age_ms < 0}",
        f"{WRITERS}::test_the_living_are_left_alone_and_the_dead_undone",
        "P9: a live writer is rolled back (Hudi #10593)",
    ),
    Mutant(
        "a dead writer lives for ever",
        "if age_ms < timeout_ms}",
        "if age_ms < timeout_ms * 1000}",
        f"{WRITERS}::test_the_living_are_left_alone_and_the_dead_undone",
        "P11: what a dead writer left is never undone",
    ),
    Mutant(
        "a turn is put over another's",
        "        storage.put_if_absent(path, body)\n    except StorageError",
        "        storage.replace(path, body)\n    except StorageError",
        f"{WRITERS}::test_a_writer_that_stood_still_longer_than_its_lock",
        "P3: a writer that lost its lock commits all the same",
    ),
    Mutant(
        "a commit takes no turn",
        "        return take_turn(self.batch.table.storage, turn)\n",
        "        return bool(turn)\n",
        "tests/unit/sink/test_several_writers.py::test_a_writer_that_stood_still_longer_than_its_lock",
        "P3: safety hangs on a lock alone, and its lease ends",
    ),
    Mutant(
        "a rollback takes no turn",
        "        if take_turn(table.storage, turn):\n",
        "        if turn:\n",
        "tests/faults/test_promises.py::test_a_writer_that_is_rolled_back_just_before_its_turn",
        "P3: a commit is rolled back while it is completed",
    ),
    Mutant(
        "what was decided is left to whoever decided it",
        "    if not timeline.is_pending(turn.instant.time):\n",
        "    if timeline:\n",
        "tests/unit/sink/test_several_writers.py::test_a_commit_that_was_decided_is_carried_out_by_others",
        "P3: a decided commit is rolled back",
    ),
    Mutant(
        "keys are not compared",
        "            check_new_keys(self.batch, prepared, timeline)\n",
        "            assert prepared\n",
        "tests/unit/sink/test_several_writers.py::test_one_new_key_in_two_file_groups_is_a_conflict",
        "P8: one new key in two file groups",
    ),
    Mutant(
        "the timeline is not loaded again under the lock",
        "        known = None if self.batch.options.concurrency.is_shared else timeline\n",
        "        known = timeline\n",
        f"{WRITERS}::test_a_commit_of_another_engine_while_the_lock_is_waited_for_is_a_conflict",
        "P3: an update in between is lost",
    ),
    Mutant(
        "a single writer does not look for hearts that beat",
        "    _refuse_living(table, pending, heartbeat_timeout_ms)\n",
        "",
        f"{WRITERS}::test_a_single_writer_does_not_undo_a_living_one_of_several",
        "P9: a live writer is rolled back",
    ),
    Mutant(
        "a manifest is completed although others decided since",
        "looked_after != str(turn.number - 1) or ",
        "",
        f"{WRITERS}::test_a_manifest_whose_batch_was_committed_since_is_not_completed",
        "P2: a batch of an old driver comes twice",
    ),
    Mutant(
        "a turn forgets what the one before it carried",
        "taken_by, before.carried)",
        "taken_by)",
        "tests/unit/sink/replay/test_replay.py::test_without_any_commit_of_ours_all_is_known_still",
        "P2: a batch comes twice where others archive",
    ),
    Mutant(
        "a late task leaves its files",
        "    if ended is not None:\n        _delete(context)\n",
        "    if ended is not None:\n",
        "tests/faults/test_promises.py::test_a_late_file_of_the_first_instant_is_invisible",
        "P16: readers that list folders see rows that were rolled back",
    ),
    Mutant(
        "a rolled-back time before the first commit counts as archived",
        "return known or not is_undone(self.storage, self.timeline, time)",
        "return True",
        "tests/faults/test_promises.py::test_a_late_file_of_the_first_instant_is_invisible",
        "P16: rows that were rolled back are read",
    ),
    Mutant(
        "the active timeline starts at a commit that a savepoint keeps",
        "first = next((i for i in self.commits if i.time not in kept), self.commits[-1])",
        "first = self.commits[0] or kept",
        "tests/property/test_foreign_timelines.py::test_what_is_committed_on_a_foreign_timeline",
        "P13: rows that others committed vanish, and older ones become the newest",
    ),
    Mutant(
        "the schema of a compaction is the table's",
        "        if not commit.is_rewrite:\n",
        "        if True:\n",
        "tests/faults/regressions/test_rewrites_of_others.py"
        "::test_a_rewrite_with_an_older_schema_hid_a_column",
        "P12: a column is gone for readers, and its values with the next rewrite",
    ),
    Mutant(
        "files beside missing properties are damage at first sight",
        "        properties = _read_properties(storage)\n        if properties is None:\n",
        "        if properties is None:\n",
        "tests/faults/regressions/test_creation_races.py"
        "::test_a_slower_creator_was_told_that_the_table_is_damaged",
        "P14: a writer is advised to remove the table that another one has just created",
    ),
    Mutant(
        "a commit says the schema that its batch began with",
        "schema = schema_beside(batch, instant.time, timeline)",
        "schema = schema_beside(batch, instant.time, timeline) and batch.schema",
        "tests/faults/regressions/test_schema_races.py"
        "::test_a_later_commit_without_a_new_column_took_it_away",
        "P12: a column that another writer added is gone, and its values with the next rewrite",
    ),
    Mutant(
        "an instant that is not the newest adds a column",
        "padded(instant.time) > padded(time):",
        "not instant:",
        "tests/faults/regressions/test_schema_races.py"
        "::test_a_column_added_by_an_earlier_instant_that_commits_later",
        "P12: a column that was committed is not in the table",
    ),
    Mutant(
        "plans of others' services are not looked at",
        "    _check_services(batch, timeline, touched, replaced)\n",
        "",
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_plan_made_meanwhile_left_the_rows_of_a_batch_out",
        "P10: rows are gone once a compaction completes that was planned without them",
    ),
    Mutant(
        "a manifest is completed over what another engine committed since",
        " or _foreign_later(table, timeline, turn.instant)\n",
        "\n",
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_manifest_is_not_completed_over_a_clustering_that_came_since",
        "P10: rows come back that a clustering has written anew",
    ),
    Mutant(
        "a restore that is pending hinders nobody",
        "    for restore in timeline.pending_restores:\n",
        "    for restore in ():\n",
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_writes_went_on_under_a_pending_restore",
        "P10: rows that a restore takes back, or part of them",
    ),
    Mutant(
        "what a batch was made from may have been taken back",
        "if not instant.num_batches and not timeline.is_committed(instant.time):",
        "if False:",
        "tests/faults/regressions/test_services_planned_meanwhile.py"
        "::test_a_batch_is_not_committed_on_top_of_what_was_taken_back",
        "P10: rows that were rolled back come again with a rewrite",
    ),
    Mutant(
        "a batch opens its instant without another look at the properties",
        "creation_ms is None:\n        check_unchanged(batch.table)\n",
        "creation_ms is None:\n        pass\n",
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_a_commit_was_put_where_nobody_looks",
        "P1: files, and an instant, in a folder where nobody looks",
    ),
    Mutant(
        "a batch is committed to a table that was upgraded while it waited for the lock",
        "        check_table(batch, instant)  # it took a while to come here\n",
        "        pass\n",
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_an_upgrade_while_the_lock_is_waited_for_is_seen",
        "P1: a commit that was reported and is in no table",
    ),
    Mutant(
        "an upgrade is taken for a rollback by another writer",
        "            check_table(batch, instant)  # an upgrade moves the timeline away\n",
        "            pass\n",
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_an_upgrade_while_staged_rows_are_merged_is_seen",
        "P1: files are left in a table of another version, and the advice does not help",
    ),
    Mutant(
        "files of a commit that an upgrade took along are taken back",
        "    if load_timeline(storage).commit_at(instant.time) is not None:\n",
        "    if False:\n",
        "tests/faults/regressions/test_upgrades_meanwhile.py"
        "::test_files_of_a_commit_that_the_upgrade_has_not_reached_stay",
        "P13: a commit is gone",
    ),
    Mutant(
        "a manifest counts without a turn",
        " and not _is_of_several(table, instant)\n",
        "\n",
        f"{WRITERS}::test_a_manifest_whose_keys_were_not_compared_commits_nothing",
        "P3: an update that nobody checked for conflicts",
    ),
    Mutant(
        "roll-back throws the markers of late files away",
        "    if ours:\n",
        "    if False:\n",
        "tests/faults/regressions/test_regressions.py::test_two_processes_may_meet",
        "P11: a file that no rollback finds",
    ),
]
"""Of several writers: locks, heartbeats, turns."""

TEXTS = [
    Mutant(
        "the nameless index of pandas is a column",
        "(index and name not in stored)",
        "(index and False)",
        f"{IN_THE_HAND}::test_the_index_of_pandas_was_stored_for_good",
        "P23: the next write is refused",
    ),
    Mutant(
        "a replay says that it wrote",
        "return WriteResult(already_committed=True)",
        "return WriteResult()",
        f"{IN_THE_HAND}::test_a_replay_says_so",
        "P2: a caller takes a replay for a write",
    ),
    Mutant(
        "what has no effect is passed over in silence",
        "(problem)\n        given.check()\n        given.warn()\n",
        "(problem)\n        given.check()\n",
        f"{USUAL}::test_other_keys_are_another_warning",
        "P23: a user believes that cleaning runs",
    ),
    Mutant(
        "a typo of an option that is obeyed is taken for one of a family without effect",
        "_meant(lower, _OBEYED, 0.92)",
        "None",
        f"{USUAL}::test_the_outcome_of_a_usual_option",
        "P23: an option that changes rows is passed over",
    ),
    Mutant(
        "a connection that was refused is used again",
        "    elif issubclass(error, AccessDeniedError) or key not in _proven:\n",
        "    elif False:\n",
        f"{CONNECTIONS}::test_credentials_that_came_after_a_failed_try_were_ignored",
        "P19: right credentials are refused until the process ends",
    ),
    Mutant(
        "a secret is hidden within words",
        "found if len(secret) >= 2 * _LEAST_TEXT else",
        "found if True else",
        f"{CONNECTIONS}::test_a_secret_was_cut_out_of_words_and_an_endpoint_hidden",
        "P19: messages that nobody can read",
    ),
    Mutant(
        "a single text is taken for its letters",
        "    if isinstance(given, str):\n        return (given,)\n",
        "",
        f"{LISTS}::test_the_letters_of_a_text_were_taken_for_partitions",
        "P1: every partition is deleted where one was meant",
    ),
    Mutant(
        "the partitions to delete are divided at their commas",
        "partitions_to_delete=paths,",
        'partitions_to_delete=tuple(part.strip() for path in paths for part in path.split(",")),',
        f"{LISTS}::test_a_partition_was_deleted_by_the_parts_of_its_name",
        "P1: other partitions than those named are deleted",
    ),
    Mutant(
        "a star stands for any text though it was said not to",
        "        if batch.options.exact_partitions:\n",
        "        if False:\n",
        f"{LISTS}::test_a_star_in_a_name_may_stand_for_itself",
        "P1: other partitions than the one named are deleted",
    ),
]
"""Of what callers hand over."""

_SPARK = "tests/faults/regressions/test_what_spark_is_told.py"
SPARK = [
    Mutant(
        "the writer that commits begins a batch of its own",
        "        if self._was_pickled:\n",
        "        if False:\n",
        f"{_SPARK}::test_only_the_writer_that_goes_to_the_tasks_begins_a_batch",
        "P1: the batch that is about to be committed is rolled back as a dead one",
    ),
    Mutant(
        "epochs of a continuous query are told of as tasks that did not report",
        "if found and all(message is None for message in found):",
        "if False:",
        f"{_SPARK}::test_epochs_of_a_continuous_query_were_committed_without_their_rows",
        "nobody is told what to use in place of the trigger",
    ),
    Mutant(
        "a table without file slices has no split",
        "in found or [None]]",
        "in found]",
        f"{_SPARK}::test_a_table_without_file_slices_could_not_be_read",
        "a table that was emptied cannot be read",
    ),
    Mutant(
        "a declared type may hold less than the table's",
        "return bool(wider.field(0).type == declared.type)",
        "return True",
        f"{_SPARK}::test_a_declared_schema_that_does_not_fit",
        "values of other rows, or an error without a name",
    ),
    Mutant(
        "a catalog table is created that no query can read",
        ">= _OF_CATALOG:",
        "> {*_OF_CATALOG, 'none'}:",
        f"{_SPARK}::test_a_catalog_table_was_created_that_nothing_could_read",
        "rows are written where nobody reads them",
    ),
]
"""Of the adapters to Spark, each without Spark."""

MUTANTS = [
    *TYPES,
    *SPARK,
    *TIMES_AND_NAMES,
    *NAMES_AND_DELETIONS,
    *COMMITS,
    *REPLAYS,
    *RECOVERIES,
    *READS,
    *MERGES,
    *STORAGE,
    *LOCKS_AND_TURNS,
    *TEXTS,
]
