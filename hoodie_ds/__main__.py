"""``python -m hoodie_ds``: the command ``hoodie-py``, where no folder of scripts is on the PATH."""

from hoodie_ds.cli.commands import table

if __name__ == "__main__":
    table()
