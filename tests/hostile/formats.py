"""All formats that are damaged, by name."""

from __future__ import annotations

from hoodie_ds.formats.log.log_block import BlockType
from tests.hostile import data_formats as data
from tests.hostile import seeds as s
from tests.hostile import table_formats as table
from tests.hostile.format import Format, either, tail_damaged
from tests.hostile.mutations import (
    forged_json,
    forged_lines,
)

FORMATS = {
    "hoodie.properties": Format(
        lambda: [
            *s.ours("cow", "/hoodie.properties"),
            *s.ours("mor", "/hoodie.properties"),
            *s.golden("hoodie.properties"),
        ],
        either(forged_lines, forged_lines),
        table.properties,
        named_by="hoodie",
    ),
    "instant name": Format(
        lambda: s.ours("mor", "commit")[:1], table.forged_name, table.names, " ", is_refused=False
    ),
    "instant name of layout 2": Format(
        lambda: s.ours("mor9", "commit")[:1], table.forged_name, table.names, " ", is_refused=False
    ),
    "commit of layout 2": Format(table.commits_in_avro, either(), table.commit_in_avro),
    "commit": Format(table.commits, either(table.forged_commit, table.forged_commit), table.commit),
    "Avro container": Format(
        data.containers, either(data.forged_container, data.forged_container), data.read_container
    ),
    "log file": Format(data.logs, either(data.forged_block), data.log_file),
    "data block": Format(
        data.blocks_of(BlockType.AVRO_DATA, BlockType.PARQUET_DATA),
        either(data.forged_block, data.forged_block),
        data.read_block_file,
    ),
    "delete block": Format(
        data.blocks_of(BlockType.DELETE),
        either(data.forged_block, data.forged_block, data.bomb_of_deletes),
        data.read_block_file,
    ),
    "base file": Format(data.bases, either(tail_damaged, data.other_parquet), data.base_file),
    "bloom filter": Format(
        data.blooms, either(data.forged_bloom, data.forged_bloom), data.read_bloom
    ),
    "HFile": Format(
        data.hfiles,
        either(data.forged_hfile, data.forged_hfile, data.forged_trailer),
        data.read_hfile,
    ),
    "marker": Format(table.pending_instant, table.forged_marker, table.marker, is_refused=False),
    "manifest": Format(
        lambda: table.temp_seeds("/manifest_"),
        either(table.forged_commit, table.forged_commit),
        table.pending,
        is_refused=False,
    ),
    "inflight file": Format(
        lambda: [
            x for x in table.temp_seeds("commit.inflight") if x.path not in s.table_files("mor")
        ],
        either(forged_json),
        table.pending,
    ),
    "hashing config": Format(
        table.hashing_configs, either(forged_json, forged_json), table.hashing_config
    ),
    "pinned timeline": Format(table.views, either(forged_json, forged_json), table.view),
}
