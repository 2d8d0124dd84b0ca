"""The texts under corpus/ with the tokens that real tokenizers made of them."""

import json
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
TOKENIZERS = ("o200k_base", "cl100k_base", "claude_2", "gemini")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-"


@dataclass(frozen=True)
class Counted:
    """One text. `ends` has the byte behind each token."""

    name: str
    raw: bytes
    ends: tuple[int, ...]

    @property
    def kind(self) -> str:
        """english, japanese, code, chat or other."""
        return self.name.partition("-")[0]

    def pieces(self, first: int, last: int, each: int) -> list[str]:
        """The tokens from `first` up to `last`, `each` of them in a piece; a character that a cut would split comes
        with the next piece, as providers do it, or not at all."""
        found = []
        begin = self._whole(first)
        for at in (*range(first + each, last, each), last):
            end = self._whole(at)
            if end > begin:
                found.append(self.raw[begin:end].decode())
                begin = end
        return found

    def text(self, first: int, last: int) -> str:
        """The same in one piece."""
        return "".join(self.pieces(first, last, last - first or 1))

    def _whole(self, tokens: int) -> int:
        """The bytes of so many tokens, less those of an unfinished character."""
        end = self.ends[tokens - 1] if tokens else 0
        while end < len(self.raw) and self.raw[end] & 0xC0 == 0x80:
            end -= 1
        return end


@cache
def counted_texts(tokenizer: str) -> tuple[Counted, ...]:
    """All texts as one tokenizer counts them."""
    packed: dict[str, str] = json.loads((CORPUS / "tokens.json").read_text())
    found = []
    for path in sorted(CORPUS.glob("*.txt")):
        raw = path.read_bytes()
        ends = tuple(accumulate(_sizes(packed[f"{tokenizer} {path.stem}"])))
        assert ends[-1] == len(raw)
        found.append(Counted(path.stem, raw, ends))
    return tuple(found)


def _sizes(packed: str) -> list[int]:
    found, more = [], 0
    for digit in packed:
        if digit == "+":
            more += len(_DIGITS)
        else:
            found.append(more + _DIGITS.index(digit))
            more = 0
    return found
