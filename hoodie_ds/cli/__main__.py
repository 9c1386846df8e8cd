"""``python -m hoodie_ds.cli``: the same command as ``python -m hoodie_ds``."""

from hoodie_ds.cli.commands import table

if __name__ == "__main__":
    table()
