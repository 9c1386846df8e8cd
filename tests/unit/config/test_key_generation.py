import pytest

from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.config.key_generation import infer_key_generator, partition_names


@pytest.mark.parametrize(
    ("keys", "partition", "generator"),
    [
        ("a", "", KeyGeneratorType.NON_PARTITION),
        ("a,b", "", KeyGeneratorType.NON_PARTITION),
        ("a", "p", KeyGeneratorType.SIMPLE),
        ("", "p", KeyGeneratorType.SIMPLE),
        ("a,b", "p", KeyGeneratorType.COMPLEX),
        ("a", "p,q", KeyGeneratorType.COMPLEX),
        ("a", "p:SIMPLE", KeyGeneratorType.CUSTOM),
    ],
)
def test_the_key_generator_follows_from_the_fields(
    keys: str, partition: str, generator: KeyGeneratorType
) -> None:
    def split(text: str) -> tuple[str, ...]:
        return tuple(filter(None, text.split(",")))

    assert infer_key_generator(split(keys), split(partition)) is generator


def test_partition_names_leave_out_types() -> None:
    assert partition_names(("a:SIMPLE", "b")) == ("a", "b")
