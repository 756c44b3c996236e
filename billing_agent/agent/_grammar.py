"""Words and patterns by which a request about invoices is understood."""

from __future__ import annotations

import re


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b")


_BILL = r"(?:invoice|bill)s?"
RISE = _words(
    "higher", "more", "rose", "risen?", "rise", "up", "increas\\w*", "jump\\w*"
)
FALL = _words("lower", "less", "fell", "fall\\w*", "down", "decreas\\w*", "drop\\w*")
NEWEST = re.compile(r"\b(?:newest|latest|most recent|current|last) (?:invoice|bill)\b")
LARGEST = _words("biggest", "largest", "(?:the )?most(?! recent)")
EVERY_LINE = _words(
    "(?:all|every|each)(?: of)?(?: the)? (?:lines?|items?|line items?|of them|one)",
    "all of (?:it|them)",
    "everything",
    "all four",
)
_REMEMBER = re.compile(
    r"\b(?:remember|note|keep in mind|from now on)\b(?: down)?(?: that)?[\s:,]+"
    r"(?P<wish>(?!my\b.*\?|what\b).*\S)|^\s*i(?:'d| would)? prefer\b.*",
    re.IGNORECASE | re.DOTALL,
)
_INTENTS = (
    ("preferences", _words("preferences?", "do i prefer", "i prefer")),
    ("recall", _words("did (?:i|we) (?:ask|talk|discuss|say)\\w*", "remember")),
    ("audit", _words("audit\\w*", rf"(?:check|review|verify)\b.*\b{_BILL}")),
    (
        "explain",
        _words(
            "why",
            "how come",
            "explain",
            "reason",
            "compar\\w+",
            "differ\\w*",
            "chang\\w+",
            "versus",
            "vs",
            "against",
            "expensive",
            "cheaper",
            RISE.pattern,
            FALL.pattern,
        ),
    ),
    (
        "list",
        _words(
            "list",
            r"how many (?:invoices|bills)",
            r"(?:which|what|all|my|our|show|last|latest|newest|recent)\b[^?.]*"
            r"\b(?:invoices|bills)",
        ),
    ),
    (
        "show",
        _words("show", "totals?", "sum", "amounts?", "how much", "what(?:'s| is| was)"),
    ),
)

# "invoice 8812", "bill no. 8812", "#8812", '"invoice": 8812.0'
_NAMED_NUMBER = re.compile(
    rf"(?:\b{_BILL}|\binv|\bno|\bnr|\bnumber|#|№)[^\w,;?!]{{0,4}}"
    r"(?:(?:number|no|nr)\b[^\w,;?!]{0,3})?(?P<number>\d{1,18})(?![\d,]*\d)"
)
# A number on its own: no amount, no year, no count of invoices.
_BARE_NUMBER = re.compile(
    r"(?<![\w.,$€£-])(?!(?:(?<=\bin )|(?<=\bof )|(?<=\bsince ))(?:19|20)\d\d\b)"
    r"(?P<number>\d{3,18})(?:\.0+)?"
    rf"(?![\d,]*\d|\.\d|\w|\s+(?:{_BILL}|months|hours|h)\b)"
)
_COUNT = re.compile(
    r"\b(?P<count>\d{1,3}|[a-z]+)\s+(?:(?:most )?(?:recent|latest|newest|last)\s+)?"
    r"(?:invoices|bills|months)\b"
)
_NUMERALS = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_NOT_A_LINE = re.compile(
    "an?|all|and|any|bill|each|every|first|invoice|last|line|one|same|that|the|these"
    "|this|what|which"
)
_LINE_LIKE = re.compile(
    r"\b(?P<before>(?!line\b)[^\W\d][\w-]*)\s+(?:line item|line|item)\b"
    r"|\bline(?: item)?(?: (?:called|named|for))?[\s:\"'“”]+(?P<after>[^\W\d][\w-]*)"
)


def intent(folded: str) -> str | None:
    """Return the first intent whose words occur, by its name."""
    return next((name for name, words in _INTENTS if words.search(folded)), None)


def wish(text: str) -> str:
    """Return what the text asks to be remembered, word for word; empty if nothing."""
    found = _REMEMBER.search(text)
    return (found["wish"] or found[0]).strip() if found else ""


def invoices(folded: str) -> tuple[int, ...]:
    """Return the invoice numbers named, in order."""
    found = {
        match.start("number"): int(match["number"])
        for pattern in (_NAMED_NUMBER, _BARE_NUMBER)
        for match in pattern.finditer(folded)
    }
    return tuple(dict.fromkeys(found[position] for position in sorted(found)))


def lines(folded: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the known lines named, else a word that stands where a line would."""
    named = {
        match.start(): name
        for name in known
        if (match := re.search(rf"\b{re.escape(name.casefold())}\b", folded))
    }
    if named:
        return tuple(named[position] for position in sorted(named))
    for match in _LINE_LIKE.finditer(folded):
        word = match["before"] or match["after"]
        if not _NOT_A_LINE.fullmatch(word):
            return (word,)
    return ()


def count(folded: str) -> int | None:
    """Return how many invoices are meant, if a number says so."""
    for match in _COUNT.finditer(folded):
        word = match["count"]
        if word.isdecimal():
            return int(word)
        if word in _NUMERALS:
            return _NUMERALS.index(word) + 1
    return None
