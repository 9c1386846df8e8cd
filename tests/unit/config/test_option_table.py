from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds.config.option_table import main


def test_the_table_between_the_marks_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "reference.md"
    path.write_text("before\n<!-- options: write -->\nold\n<!-- end of options -->\nafter\n")
    main([str(path)])
    text = path.read_text()
    assert "`hoodie.index.type`" in text
    assert "old\n" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


@pytest.mark.parametrize("given", [[], ["no/such/file.md"]], ids=["none", "missing"])
def test_without_a_file_the_command_says_how_it_is_used(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    assert "usage: python -m hoodie_ds.config.option_table [-h] path" in capsys.readouterr().err


def test_help_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert not ended.value.code
    assert "the file, conf/README.md" in capsys.readouterr().out
