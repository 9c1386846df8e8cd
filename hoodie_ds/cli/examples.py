"""Examples of the commands, which their help and `docs/reference/commands.md` show."""

from __future__ import annotations

from typing import Final

_LINES: Final = (
    "show /tmp/trips",
    "timeline /tmp/trips --action clean",
    "commits /tmp/trips --limit 5 --json",
    "files /tmp/trips --groups",
    "schema /tmp/trips --history",
    "read /tmp/trips --where 'city = oslo' --json",
    "sql 'SELECT city, sum(fare) FROM t GROUP BY city' /tmp/trips",
    "locate /tmp/trips k1",
    "plan /tmp/trips",
    "trace /tmp/trips k1",
    "diff /tmp/trips 20261127093000000",
    "verify s3://bucket/trips",
    "report /tmp/trips -o trips.html --verify",
    "compact /tmp/trips --dry-run",
    "clean /tmp/trips --conf hoodie.clean.commits.retained=10",
    "archive /tmp/trips --conf hoodie.keep.max.commits=60",
    "cluster /tmp/trips --conf hoodie.clustering.plan.strategy.sort.columns=city",
    "rollback /tmp/trips 20261127093000000",
    "savepoint /tmp/trips --comments 'before the import'",
    "restore /tmp/trips 20261127093000000 --dry-run",
    "cleanup /tmp/trips --dry-run",
    "delete /tmp/trips --where 'city = oslo' --where 'fare > 9'",
    "update /tmp/trips --set 'fare = 2.5' --where 'fare is null'",
    "merge /tmp/trips changes.csv --on uuid",
    "delete-partition /tmp/trips 'day=2025-*'",
    "upgrade /tmp/trips --to 9",
    "downgrade /tmp/trips --to 8",
    "rescale-buckets /tmp/trips 16",
    "sync hive /tmp/trips",
    "delta sync /tmp/trips",
    "metadata check /tmp/trips --repair",
    "alter /tmp/trips 'rename fare to cost' 'add tip double'",
    "create /tmp/trips --columns 'uuid string, ts bigint' --key uuid --ordering ts",
    "load /tmp/rides rides.csv --key id",
)
EXAMPLES: Final = {line.partition(" ")[0]: f"hoodie-py {line}" for line in _LINES}
"""A command line of each command, by its name."""
