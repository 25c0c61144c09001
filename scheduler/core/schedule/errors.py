"""The one error of this package: a schedule that cannot be accepted, said so that its writer can mend it."""

from __future__ import annotations


class ScheduleError(ValueError):
    """A schedule that is refused.

    `message` says what is wrong and what to do, `text` is the piece of input concerned, `position` the 0-based
    index in `text` where the trouble starts (None where there is no such place), `suggestion` a corrected form
    (None where none is certain).
    """

    def __init__(
        self, message: str, *, text: str = "", position: int | None = None, suggestion: str | None = None
    ) -> None:
        self.message = _printable(message)
        super().__init__(self.message)
        self.text = text
        self.position = position
        self.suggestion = None if suggestion is None else _printable(suggestion)

    def __str__(self) -> str:
        """Message, then the text with a caret under the place, then the corrected form."""
        lines = [self.message]
        if self.text and self.position is not None:
            lines += _pointed(self.text, self.position)
        if self.suggestion is not None:
            lines.append(f"  did you mean: {self.suggestion}")
        return "\n".join(lines)


_SHOWN = 76  # characters of the text that fit on a terminal line beside the indent


def _pointed(text: str, position: int) -> list[str]:
    first = max(0, position - _SHOWN // 2)
    window = text[first : first + _SHOWN]
    return [f"  {_printable(window)}", "  " + " " * (position - first) + "^"]


def _printable(text: str) -> str:
    """The text with a dot for each character that would move a terminal's cursor or cannot be encoded."""
    return "".join(char if char.isprintable() else "\N{MIDDLE DOT}" for char in text)
