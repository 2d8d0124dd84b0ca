"""Money and factors as text: exact decimals, read digit by digit into billionths; nothing binary is on the way."""

import re
from typing import Annotated

from headrace.config.forms import Form, Reading
from headrace.model.limits import NANO, decimal_text

DECIMALS = 9
MAX_AMOUNT = 1_000_000_000
"""Currency units; in billionths it fits into 64 bits with room."""
MAX_PRICE = 1_000_000
MAX_FACTOR = 1000

_DECIMAL = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,30}))?")


def read_nano(text: str, name: str, maximum: int) -> int:
    """`1.25` → 1_250_000_000, exactly. Raises ValueError for what is negative, larger than `maximum` (in whole units),
    finer than a billionth, or written in another way."""
    match = _DECIMAL.fullmatch(text)
    if not match:
        raise ValueError(f"must be {name}")
    fraction = (match[2] or "").rstrip("0")
    if len(fraction) > DECIMALS:
        raise ValueError(f"must have at most {DECIMALS} digits after the point; it is {name}")
    nano = int(match[1]) * NANO + int(fraction.ljust(DECIMALS, "0"))
    if nano > maximum * NANO:
        raise ValueError(f"must be at most {maximum}; it is {name}")
    return nano


def show_nano(nano: int | None) -> str:
    """Billionths → the shortest decimal text that reads back as the same; None is `none`."""
    return "none" if nano is None else decimal_text(nano)


def _decimal(what: str, maximum: int) -> Form[int]:
    name = f"{what} from 0 to {maximum}, such as 1.25"

    def read(text: str, reading: Reading) -> int:
        return read_nano(text, name, maximum)

    return Form(name, read, show_nano)


AMOUNT = _decimal("an amount", MAX_AMOUNT)
PRICE = _decimal("a price", MAX_PRICE)
FACTOR = _decimal("a factor", MAX_FACTOR)

Amount = Annotated[int, AMOUNT]
Rate = Annotated[int | None, PRICE]
PriceText = Annotated[int, PRICE]
Factor = Annotated[int, FACTOR]
