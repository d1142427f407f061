"""Sizes in bytes as people write them: `2G`, `512M`, `1.5GiB`, `4096`.

The input is a text, the output a number of bytes. A unit is a power of 1024, and its case does not
matter: k, M, G and T, or in full KiB, MiB, GiB and TiB. A number without a unit counts bytes.
`GB` is refused, because half of the world reads it as a power of 1000.
"""

from __future__ import annotations

import re

from eqsat.errors import InputError

_FORM = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}) ?([kmgt]?)(i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4}
LARGEST_SIZE = (1 << 62) - 1


def byte_size(text: str) -> int:
    """Returns the number of bytes that a text such as `2G` stands for, rounded down.

    Raises an `InputError` that says how a size is written.

    >>> byte_size("1.5GiB"), byte_size("64k"), byte_size("4096")
    (1610612736, 65536, 4096)
    """
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    found = _FORM.fullmatch(text.strip())
    number, prefix, ending = ("", "", "") if found is None else (found[1], found[2], (found[3] or "").lower())
    if not number or (not prefix and ("." in number or ending == "ib")):
        raise InputError(f"'{shown}' is not a number of bytes such as 4096, 64k, 512M, 2G or 1.5GiB")
    unit = "k" if prefix in ("k", "K") else prefix.upper()
    if prefix and ending == "b":
        raise InputError(f"'{shown}' may be of powers of 1000; a unit here is a power of 1024: write {number}{unit} or {number}{unit.upper()}iB")
    factor = 1024 ** _POWERS[unit]
    size = int(float(number) * factor) if "." in number else int(number) * factor
    if size > LARGEST_SIZE:
        raise InputError(f"'{shown}' is more bytes than any machine has")
    return size


def written_size(size: int) -> str:
    """Returns a number of bytes as `byte_size` reads it, in the largest unit that leaves no rest.

    >>> written_size(2 << 30), written_size(1500)
    ('2G', '1500')
    """
    for prefix, power in (("T", 4), ("G", 3), ("M", 2), ("k", 1)):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{prefix}"
    return str(size)
