"""The content of a batch's commit: its files, what they replace, and earlier micro-batches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from hoodie_ds.config.enums import Operation
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.hints import COPY
from hoodie_ds.sink.messages import METRICS_KEY, TaskCommitMessage, WriteMetrics
from hoodie_ds.sink.replay.replay import total_digest
from hoodie_ds.sink.replay_guard import BATCH_KEY, ReplayGuard
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.live_files import near_groups
from hoodie_ds.timeline.bodies.commit_metadata import (
    ADDED_KEY,
    AT_ITS_TIME,
    CHECKSUMS_KEY,
    FOOTER,
    PENDING_KEY,
    SCHEMA_KEY,
    CommitMetadata,
    WriteStat,
)
from hoodie_ds.timeline.bodies.key_files import as_extra

ROWS_KEY: Final = "_hoodie_ds_rows_in"
"""Key in a commit's extra metadata: number of incoming rows."""


def commit_record(
    plan: WritePlan,
    messages: Sequence[TaskCommitMessage],
    statuses: Sequence[WriteStatus],
    guard: ReplayGuard,
    of_all: ReplayGuard | None,
    pending: Sequence[str],
    replaced: Mapping[str, tuple[str, ...]],
    schema: str,
    added: Sequence[str],
) -> tuple[CommitMetadata, list[ReplayGuard]]:
    """Return the commit of a batch, and the guards of writers that it leaves out.

    `guard` holds what was committed under earlier times, and `of_all` what was committed under
    later times too, None if nothing was. `pending` are the times of other pending write instants.
    `replaced` has file ids by partition path. `schema` is the table's from now on, in Avro JSON,
    and `added` its columns that batches have added.
    """
    batch_id = messages[0].batch_id
    identity = {}
    if batch_id is not None:
        guard = guard.with_batch(batch_id, total_digest(messages))
        identity = {BATCH_KEY: batch_id.to_json()}
    guard, left_out = guard.parted(plan.options.limits.writers_carried)
    checksums = {path: sum_ for status in statuses for path, sum_ in status.checksums.items()}
    extra = {
        **plan.options.extra_metadata,
        **identity,
        SCHEMA_KEY: schema,
        CHECKSUMS_KEY: json.dumps(checksums, sort_keys=True),
        METRICS_KEY: WriteMetrics.total(message.metrics for message in messages).to_json(),
        ROWS_KEY: str(sum(message.num_rows for message in messages)),
        PENDING_KEY: " ".join(pending),
        **as_extra({k: v for message in messages for k, v in message.key_files.items()}),
    }
    if added:
        extra[ADDED_KEY] = json.dumps(added)
    if of_all is not None:
        extra |= {AT_ITS_TIME[key]: text for key, text in guard.entries().items()}
        guard = guard.merged(of_all)
    if guard.committed:
        extra |= guard.entries()
    stats = tuple(sorted((status.stat for status in statuses), key=lambda stat: stat.path))
    return CommitMetadata(stats, plan.operation.value.upper(), extra, replaced), left_out


def joined(before: CommitMetadata, after: CommitMetadata, path: str) -> CommitMetadata:
    """Return the combined commit of an instant's micro-batches.

    `after` is the next one, which may have rewritten base files of the earlier ones, `before`;
    `path` is their manifest, for errors.
    """
    rewritten = {_group(stat): stat for stat in after.stats if stat.log is None}
    kept = [s for s in before.stats if s.log is not None or _group(s) not in rewritten]
    earlier = {_group(stat): stat for stat in before.stats if stat.log is None}
    stats = [_since(earlier.get(_group(s)), s) if s.log is None else s for s in after.stats]
    named = {stat.path for stat in (*kept, *stats)}
    checksums = {
        path: found
        for path, found in sorted({**before.checksums, **after.checksums}.items())
        if path.removesuffix(FOOTER) in named
    }
    (metrics, rows), (more_metrics, more_rows) = _figures(before, path), _figures(after, path)
    extra = {
        **{key: text for key, text in before.extra.items() if key not in AT_ITS_TIME.values()},
        **after.extra,
        CHECKSUMS_KEY: json.dumps(checksums),
        METRICS_KEY: WriteMetrics.total([metrics, more_metrics]).to_json(),
        ROWS_KEY: str(rows + more_rows),
    }
    ordered = tuple(sorted((*kept, *stats), key=lambda stat: stat.path))
    return replace(after, stats=ordered, extra=extra)


def _figures(commit: CommitMetadata, path: str) -> tuple[WriteMetrics, int]:
    """The metrics of a commit's batches, and their number of rows."""
    try:
        return WriteMetrics.from_json(commit.extra[METRICS_KEY]), int(commit.extra[ROWS_KEY])
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(
            f"{path} does not say what its batches held ({error!r:.200})", COPY
        ) from error


def _group(stat: WriteStat) -> FileGroupId:
    return FileGroupId(stat.partition_path, stat.file_id)


def _since(earlier: WriteStat | None, stat: WriteStat) -> WriteStat:
    """Count the changes of a base file since the one before the instant."""
    if earlier is None:
        return stat
    return replace(
        stat,
        prev_commit=earlier.prev_commit,
        num_inserts=earlier.num_inserts + stat.num_inserts,
        num_update_writes=earlier.num_update_writes + stat.num_update_writes,
        num_deletes=earlier.num_deletes + stat.num_deletes,
    )


def replaced_groups(
    plan: WritePlan, partitions: Collection[str], written: Collection[FileGroupId] = ()
) -> dict[str, tuple[str, ...]]:
    """Find the live file groups that a write replaces, by partition path, in its own view.

    Also groups whose files are missing, so that overwritten rows do not return with them.
    `partitions` are those with rows. `written` are file groups that the write begins; one may have
    the id of a bucket's group that is missing.
    """
    if not plan.operation.replaces or plan.timeline.first_commit is None:
        return {}
    storage, timeline, view, chosen = plan.table.storage, plan.timeline, plan.view, _chosen(plan)
    if chosen is None:
        paths = sorted(partitions)
        listed = [slice_ for path in paths for slice_ in view.latest_slices(path)]
        named = {group for path in paths for group in near_groups(storage, timeline, path)}
    else:
        listed = [*view.slices_among(s for s in view.data_files() if chosen(s.folder))]
        named = {g for g in near_groups(storage, timeline) if chosen(g.partition_path)}
    groups = sorted({slice_.group for slice_ in listed} | (named - set(written)))
    by_partition = groupby(groups, key=lambda group: group.partition_path)
    return {path: tuple(group.file_id for group in found) for path, found in by_partition}


def _chosen(plan: WritePlan) -> Callable[[str], object] | None:
    """Returns which partitions a write replaces; None if those of its rows."""
    patterns = plan.options.partitions_to_delete
    if plan.operation is Operation.INSERT_OVERWRITE_TABLE:
        return lambda _: True
    if plan.operation is not Operation.DELETE_PARTITION or patterns is None:
        return None
    return patterns.__contains__ if plan.options.exact_partitions else _any_of(patterns).fullmatch


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """A regular expression that matches any of some patterns, in which ``*`` matches any string."""
    parts = (".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns)
    return re.compile("|".join(parts), re.DOTALL)
