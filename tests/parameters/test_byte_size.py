"""Sizes in bytes: one parser for the command line and for Python."""

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqsat.cli.options import size
from eqsat.errors import InputError
from eqsat.parameters.byte_size import LARGEST_SIZE, byte_size, written_size
from eqsat.settings import Settings


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4096B", 4096),
        ("64k", 64 << 10),
        ("64K", 64 << 10),
        ("64KiB", 64 << 10),
        ("512M", 512 << 20),
        ("512mib", 512 << 20),
        ("2G", 2 << 30),
        (" 2 GiB ", 2 << 30),
        ("1.5GiB", 3 << 29),
        (".5k", 512),
        ("1T", 1 << 40),
    ],
)
def test_a_size_is_a_number_and_a_power_of_1024(text: str, bytes_: int) -> None:
    assert byte_size(text) == size(text) == bytes_
    assert Settings(memory_limit=text).memory_bytes == Settings(max_growth=text).growth(0) == bytes_


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a number of bytes"),
        ("much", "is not a number of bytes"),
        ("-1", "is not a number of bytes"),
        ("nan", "is not a number of bytes"),
        ("1e9", "is not a number of bytes"),
        ("²", "is not a number of bytes"),
        ("0x10", "is not a number of bytes"),
        ("G", "is not a number of bytes"),
        ("1.5", "is not a number of bytes"),
        ("2GB", "write 2G or 2GiB"),
        ("2mb", "write 2M or 2MiB"),
        ("2kb", "write 2k or 2KiB"),
        ("2iB", "is not a number of bytes"),
        ("99999999T", "more bytes than any machine has"),
        ("9" * 500, "is not a number of bytes"),
    ],
)
def test_anything_else_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        byte_size(text)
    assert said in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 200
    with pytest.raises(argparse.ArgumentTypeError):
        size(text)
    with pytest.raises(InputError, match="memory_limit"):
        Settings(memory_limit=text)


@given(st.integers(0, LARGEST_SIZE))
def test_a_written_size_is_read_back(number: int) -> None:
    assert byte_size(written_size(number)) == number
