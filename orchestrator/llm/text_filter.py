"""Turns a model's text into text that can be spoken, while it streams.

Every rule looks at the beginning of what is not decided yet and either consumes a part of it, or waits because more
text could change its mind. No rule looks at where a chunk ends, so any chunking gives the same result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.llm.text_patterns import expression_tag, is_unspoken, stage_direction
from orchestrator.llm.think import ThinkStripper


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionCue:
    """The text asked for an expression (`[happy]`, `*smiles*`) at `offset` of the filtered text."""

    expression: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What a chunk gave: speakable text and the cues found on the way."""

    text: str = ""
    cues: tuple[ExpressionCue, ...] = ()


# How far a closing mark may be; what is open longer is taken literally.
_SPAN = 80
_LONG_SPAN = 400
_URL_STARTS = ("https://", "http://", "www.")
_URL_END = re.compile(r"[\s<>\"'“”‘’「」『』（）\[\]【】。，！？；、：\u4e00-\u9fff]")
_TRAILING_URL = ".,;:!?"
_CLOSERS = {"(": ")", "（": "）", "[": "]", "【": "】", "{": "}"}
_ROLE_USER = ("user", "human", "用户", "user input")
_ROLE_SELF = ("assistant", "ai", "bot", "character", "助手", "助理", "答")
_FENCE = "```"
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,60}>|<\|[^<>\n|]{1,40}\|>|<!--[^\n]{0,60}?-->|<https?://[^<>\s]*>")
_TAG_START = re.compile(r"<(?:/?[a-zA-Z][^<>\n]{0,60}|\|[^<>\n|]{0,40}\|?|/|!(?:-(?:-[^\n]{0,60})?)?)?$")
_LINE_MARK = re.compile(r"#{1,6}[ \t]+|>[ \t]?|[-+*•·][ \t]+")
_LINE_MARK_START = re.compile(r"(?:#{1,6}[ \t]*|[-+*•·][ \t]*)$")
_RULE_LINE = re.compile(r"[ \t]*(?:-[ \t]*){3,}\n|[ \t]*(?:\*[ \t]*){3,}\n|[ \t]*(?:_[ \t]*){3,}\n|[ \t]*={3,}[ \t]*\n")
_RULE_START = re.compile(r"[ \t]*(?:[-][- \t]*|[*][* \t]*|[_][_ \t]*|[=][= \t]*)$")
_TABLE_RULE = re.compile(r"\|[ \t:|-]*\n")
_TABLE_RULE_START = re.compile(r"\|[ \t:|-]*$")
_EMOTICON = re.compile(r"[:;=]-?[)(DPp]|\^_\^|:'\(")
_EMOTICON_START = re.compile(r"(?:[:;=]-?|\^_?|:')$")
_SHORTCODE = re.compile(r":([a-z][a-z_]{1,24}):")
_SHORTCODE_START = re.compile(r":[a-z][a-z_]{0,24}$")
_SENTENCE_ENDS = ".!?。！？…~～"
_NO_SPACE_BEFORE = frozenset(".,!?;:)，。！？；：）、」』”")
_MAX_ROLE = 24
_PLAIN_BLANKS = str.maketrans({"\t": " ", "\u00a0": " ", "\u3000": " ", "\u2009": " ", "\u202f": " ", "\r": None})


class TextFilter:
    """Streaming filter; `feed` chunks, then `flush` once.

    Drops code blocks, thoughts, markdown marks, URLs, emoji, HTML, stage directions and role prefixes. Everything
    after a line that begins with the user's role is dropped: the model has begun to write the user's part.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        """Take `names` (the character's) for role prefixes, too."""
        self._own = tuple(name.lower() for name in (*names, *_ROLE_SELF))
        self._roles = self._own + _ROLE_USER
        self._thoughts = ThinkStripper()
        self._buffer = ""
        self._code_fence = ""
        self._is_over = False
        self._at_line_start = True
        self._is_star_open = False
        # Emission: whitespace waits until something follows it.
        self._gap = ""
        self._has_removed = False
        self._last = ""
        self._length = 0
        self._out: list[str] = []
        self._cues: list[ExpressionCue] = []
        self._url_allowed = True

    def feed(self, chunk: str) -> Filtered:
        """Return what can be decided with `chunk`."""
        self._buffer += self._thoughts.feed(chunk).translate(_PLAIN_BLANKS)
        self._decide(is_final=False)
        return self._taken()

    def flush(self) -> Filtered:
        """Return the rest at the end of the text."""
        self._buffer += self._thoughts.flush().translate(_PLAIN_BLANKS)
        self._decide(is_final=True)
        return self._taken()

    def _taken(self) -> Filtered:
        result = Filtered(text="".join(self._out), cues=tuple(self._cues))
        self._out.clear()
        self._cues.clear()
        return result

    # --- deciding ----------------------------------------------------------------------------------------

    def _decide(self, *, is_final: bool) -> None:
        while self._buffer and not self._is_over:
            used = self._step(self._buffer, is_final)
            if used == 0:
                return
            self._buffer = self._buffer[used:]
        if self._is_over:
            self._buffer = ""

    def _step(self, text: str, is_final: bool) -> int:
        """Consume a part of `text` and return its length; 0 to wait for more (never when `is_final`)."""
        if self._code_fence:
            return self._in_code(text, is_final)
        if self._at_line_start:
            used = self._line_start(text, is_final)
            if used is not None:
                return used
        used = self._special(text, is_final)
        if used is not None:
            return used
        self._emit(text[0])
        return 1

    def _in_code(self, text: str, is_final: bool) -> int:
        """Drop up to and with the closing fence; a block that is never closed swallows the rest."""
        end = text.find(self._code_fence)
        if end < 0:
            return len(text) if is_final else 0
        used = end + len(self._code_fence)
        self._code_fence = ""
        return used

    def _line_start(self, text: str, is_final: bool) -> int | None:
        """Handle what is only special at the start of a line; None if nothing is."""
        if text[0] in " \n":
            self._blank(text[0])
            return 1
        line, newline, _ = text.partition("\n")
        is_open = not newline and not is_final
        whole = line + "\n" if newline or is_final else line
        for pattern, start in ((_RULE_LINE, _RULE_START), (_TABLE_RULE, _TABLE_RULE_START)):
            if pattern.match(whole):
                self._remove()
                return len(line) + len(newline)
            if is_open and start.match(text):
                return 0
        mark = _LINE_MARK.match(text)
        if mark is not None and not (mark.end() == len(text) and not is_final):
            return mark.end()
        if not is_final and (mark is not None or _LINE_MARK_START.match(text)):
            return 0
        return self._role(text, line, is_open)

    def _role(self, text: str, line: str, is_open: bool) -> int | None:
        """Handle `Name:` at the start of a line; None if there is none."""
        bare = text.lstrip("*_")
        stars = len(text) - len(bare)
        head = line[stars : stars + _MAX_ROLE]
        match = re.match(r"([^:：\n]*?)[*_]*[ ]?[:：][*_]*", head)
        if match is None:
            lowered = head.lower().rstrip("*_ ")
            may_grow = is_open and len(head) < _MAX_ROLE and ":" not in head and "：" not in head
            if may_grow and any(role.startswith(lowered) for role in self._roles):
                return 0
            self._at_line_start = False
            return None
        role = match.group(1).strip().lower()
        if role not in self._roles:
            self._at_line_start = False
            return None
        end = stars + match.end()
        if is_open and end == len(text):
            return 0  # marks around the colon may still come
        self._is_over = bool(self._last) and role not in self._own
        return end

    def _special(self, text: str, is_final: bool) -> int | None:
        """Handle what is special anywhere; None if the first character is plain."""
        char = text[0]
        if char in "*_~":
            return self._emphasis(text, is_final)
        if char in _CLOSERS:
            return self._bracket(text, is_final)
        if char == "`":
            return self._code(text, is_final)
        if char == "<":
            return self._tag(text, is_final)
        if char in "hHwW" and self._url_allowed:
            return self._url(text, is_final)
        if char in ":;=^":
            return self._emoticon(text, is_final)
        if char == "|":
            self._bar()
            return 1
        if char == "!" and (text.startswith("![") or (text == "!" and not is_final)):
            return 0 if text == "!" else self._skipped_mark()
        if char == "\\":
            return self._escape(text, is_final)
        if char in " \n":
            self._blank(char)
            return 1
        if is_unspoken(char):
            self._remove()
            return 1
        return None

    def _code(self, text: str, is_final: bool) -> int:
        """Begin a code block, or drop the mark of inline code, whose words are kept."""
        if text.startswith(_FENCE):
            self._code_fence = _FENCE
            self._remove()
            return len(_FENCE)
        if _FENCE.startswith(text) and not is_final:
            return 0
        return self._skipped_mark()

    def _skipped_mark(self) -> int:
        self._remove(quietly=True)
        return 1

    def _escape(self, text: str, is_final: bool) -> int | None:
        """Take a mark behind a backslash literally."""
        if len(text) < 2 and not is_final:
            return 0
        if len(text) > 1 and text[1] in "*_~`[]()<>#|\\!-+.":
            self._emit(text[1])
            return 2
        return None

    def _emphasis(self, text: str, is_final: bool) -> int | None:
        """Drop the marks of emphasis, and stage directions between single stars."""
        char = text[0]
        run = len(text) - len(text.lstrip(char))
        if run == len(text) and run <= _SPAN and not is_final:
            return 0
        following = text[run : run + 1]
        is_inner = bool(self._last) and not self._gap and self._last.isalnum() and following.isalnum()
        is_literal = (
            (char == "_" and is_inner)  # a_name
            or (char == "~" and run == 1)
            or (char == "*" and run == 1 and is_inner and self._last.isdigit() and following.isdigit())  # 2*3
            or (char == "*" and run == 1 and bool(self._gap) and following in (" ", ""))  # 2 * 3
        )
        if is_literal:
            self._emit(text[:run])
            return run
        if char == "*" and run == 1 and not self._is_star_open and following not in (" ", "\n", ""):
            return self._stage(text, is_final)
        self._is_star_open = self._is_star_open and run != 1
        self._remove(quietly=True)
        return run

    def _stage(self, text: str, is_final: bool) -> int:
        end, is_decided = _closing(text, "*", _SPAN, is_final)
        if not is_decided:
            return 0
        if end > 0:
            is_stage, expression = stage_direction(text[1:end])
            if is_stage:
                self._cue(expression)
                self._remove()
                return end + 1
            self._is_star_open = True
        self._remove(quietly=True)
        return 1

    def _bracket(self, text: str, is_final: bool) -> int | None:
        """Handle links, tags and stage directions in brackets."""
        char = text[0]
        end, is_decided = _closing(text, _CLOSERS[char], _LONG_SPAN if char == "[" else _SPAN, is_final)
        if not is_decided:
            return 0
        if end <= 0:
            return None
        content = text[1:end]
        expression = expression_tag(content)
        is_stage, shown = stage_direction(content)
        if char == "[":
            return self._square(text, end, is_final, expression, is_stage, shown)
        # "An (angry) sea" is read; between sentences the same is a tag.
        is_tag = expression is not None and (char == "{" or not self._last or self._last in _SENTENCE_ENDS)
        if char == "【" or is_tag or is_stage:
            self._cue(expression or shown)
            self._remove()
            return end + 1
        return None

    def _square(
        self, text: str, end: int, is_final: bool, expression: str | None, is_stage: bool, shown: str
    ) -> int | None:
        content = text[1:end]
        following = text[end + 1 : end + 2]
        if not following and not is_final:
            return 0
        if following == "(":
            close, is_decided = _closing(text[end + 1 :], ")", _LONG_SPAN, is_final)
            if not is_decided:
                return 0
            if close > 0:
                # The label is filtered again, the address is dropped.
                self._buffer = text[: end + 2 + close] + content + text[end + 2 + close :]
                return end + 2 + close
        if expression is not None or is_stage:
            self._cue(expression or shown)
            self._remove()
            return end + 1
        if re.fullmatch(r"[\d,\s^-]+|[ xX]", content):
            self._remove()
            return end + 1
        self._remove(quietly=True)
        self._buffer = text[: end + 1] + content + text[end + 1 :]
        return end + 1

    def _tag(self, text: str, is_final: bool) -> int | None:
        match = _TAG.match(text)
        if match is not None:
            self._remove()
            return match.end()
        if not is_final and _TAG_START.match(text):
            return 0
        return None

    def _url(self, text: str, is_final: bool) -> int | None:
        lowered = text[:8].lower()
        if any(lowered.startswith(start) for start in _URL_STARTS):
            end = _URL_END.search(text)
            if end is None and not is_final:
                return 0
            url = (text[: end.start()] if end is not None else text).rstrip(_TRAILING_URL)
            while url.endswith(")") and url.count(")") > url.count("("):
                url = url[:-1].rstrip(_TRAILING_URL)
            self._remove()
            return len(url)
        if not is_final and any(start.startswith(lowered) for start in _URL_STARTS):
            return 0
        return None

    def _emoticon(self, text: str, is_final: bool) -> int | None:
        if not (self._gap or not self._last or self._last in ".!?,。！？，"):
            return None
        code = _SHORTCODE.match(text)
        if code is not None:
            following = text[code.end() : code.end() + 1]
            if not following and not is_final:
                return 0
            if not following.isalnum():
                self._cue(expression_tag(code.group(1)) or "")
                self._remove()
                return code.end()
        match = _EMOTICON.match(text)
        if match is not None:
            if match.end() == len(text) and not is_final:
                return 0
            following = text[match.end() : match.end() + 1]
            if not following.isalnum():
                self._remove()
                return match.end()
            return None
        if not is_final and (_EMOTICON_START.match(text) or _SHORTCODE_START.match(text)):
            return 0
        return None

    # --- emitting ----------------------------------------------------------------------------------------

    def _cue(self, expression: str) -> None:
        if expression:
            self._cues.append(ExpressionCue(expression=expression, offset=self._length))

    def _remove(self, *, quietly: bool = False) -> None:
        """Note that something was left out here; `quietly` for marks that touch their word."""
        self._has_removed = self._has_removed or not quietly
        self._url_allowed = True

    def _blank(self, char: str) -> None:
        self._gap = "\n" if char == "\n" or "\n" in self._gap else " "
        if char == "\n":
            self._at_line_start = True
            self._is_star_open = False
        self._url_allowed = True

    def _bar(self) -> None:
        """Read a table's column border as a pause."""
        if self._last and self._last not in ",，.。!！?？:：\n" and "\n" not in self._gap:
            self._gap = ""
            self._emit(",")
        self._blank(" ")

    def _emit(self, text: str) -> None:
        if self._gap and self._last:
            keeps = not (self._has_removed and text[0] in _NO_SPACE_BEFORE and self._gap == " ")
            if keeps:
                self._write(self._gap)
        self._gap = ""
        self._has_removed = False
        self._at_line_start = False
        self._url_allowed = not text[-1].isalnum() or ord(text[-1]) > 0x2E80
        self._write(text)
        self._last = text[-1]

    def _write(self, text: str) -> None:
        self._out.append(text)
        self._length += len(text)


def _closing(text: str, closer: str, span: int, is_final: bool) -> tuple[int, bool]:
    """Return where `closer` is (-1: not within `span` or not on this line) and whether that is decided."""
    window = text[1 : span + 1]
    line = window.partition("\n")[0]
    at = line.find(closer)
    if at >= 0:
        return at + 1, True
    return -1, is_final or len(line) < len(window) or len(window) == span
