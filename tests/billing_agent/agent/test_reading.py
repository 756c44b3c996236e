"""Reading: many wordings, the same request."""

from __future__ import annotations

import pytest

from billing_agent.agent.reading import READ_LIMIT, Intent, read

LINES = ("compute", "storage", "egress", "support")


@pytest.mark.parametrize(
    "words",
    [
        "Why was invoice 8812 higher than last month?",
        "invoice #8812",
        "bill 8812",
        "Invoice no. 8812, please",
        "Invoice number 8812",
        "#8812?",
        "8812",
        "what about 8812.",
        "How much of 8812 is compute?",
        '{"invoice": 8812}',
        '{"invoice": 8812.0}',
        '{"invoice": "8812"}',
        "INVOICE 8812",
        "the 12 hours on invoice 8812",
        "Why did invoice 8812 rise by 1,055.00 in 2026?",
    ],
)
@pytest.mark.case(7)
def test_an_invoice_number_is_found(words):
    assert read(words).invoices == (8812,)


@pytest.mark.parametrize(
    "words",
    [
        "Why is my bill 1,127.80 higher?",
        "Audit the last 240 invoices",
        "my invoices of 2026",
        "It cost $4310",
        "between 1480.50 and nothing",
        "hello",
        "invoice " + "9" * 40,
        "",
    ],
)
def test_other_numbers_are_no_invoice(words):
    assert read(words).invoices == ()


def test_two_invoices_keep_their_order():
    assert read("compare 8767 with invoice 8812").invoices == (8767, 8812)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("The compute line.", ("compute",)),
        ("STORAGE!", ("storage",)),
        ("egress and compute", ("egress", "compute")),
        ("computers are great", ()),
        ("the catering line", ("catering",)),
        ("line item catering", ("catering",)),
        ("which line?", ()),
        ("the first line", ()),
    ],
)
def test_lines_are_found_among_the_known_ones(words, lines):
    assert read(words, LINES).lines == lines


def test_a_line_is_recognised_without_an_invoice_in_view():
    assert read("The compute line.").lines == ("compute",)


def test_a_line_with_odd_characters_is_matched_as_it_is():
    assert read("the c++ (eu) line", ("c++ (eu)",)).lines == ()
    assert read("the gpu.large line", ("gpu.large", "gpuxlarge")).lines == (
        "gpu.large",
    )


@pytest.mark.parametrize(
    ("words", "intent"),
    [
        ("Why was invoice 8812 higher than last month?", Intent.EXPLAIN),
        ("What changed on bill 8767?", Intent.EXPLAIN),
        ("compare 8812 and 8767", Intent.EXPLAIN),
        ("how come it went up", Intent.EXPLAIN),
        ("invoice 8812", Intent.SHOW),
        ("What is the total of invoice 8812?", Intent.SHOW),
        ("Tell me about 8812", Intent.SHOW),
        ("What's the total of the compute line?", Intent.EXPLAIN),
        ("List my invoices", Intent.LIST),
        ("Which invoices do we have?", Intent.LIST),
        ("How many invoices are there?", Intent.LIST),
        ("Audit the last 24 invoices", Intent.AUDIT),
        ("Please check all invoices", Intent.AUDIT),
        ("Remember that I prefer short answers", Intent.REMEMBER),
        ("I prefer short answers", Intent.REMEMBER),
        ("From now on, answer in one sentence", Intent.REMEMBER),
        ("What do I prefer?", Intent.PREFERENCES),
        ("Do you remember my preference?", Intent.PREFERENCES),
        ("Did we talk about egress before?", Intent.RECALL),
        ("Hello", Intent.UNCLEAR),
        ("", Intent.UNCLEAR),
    ],
)
def test_the_intent_is_understood(words, intent):
    assert read(words).wanted is intent


@pytest.mark.parametrize(
    ("words", "direction"),
    [("why higher", 1), ("why did it drop", -1), ("what changed", 0)],
)
def test_the_direction_is_understood(words, direction):
    assert read(words).direction == direction


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("audit the last 24 invoices", 24),
        ("audit twelve invoices", 12),
        ("audit all invoices", None),
        ("the last three months", 3),
        ("the 5 most recent invoices", 5),
        ("audit 5 recent invoices", 5),
    ],
)
def test_a_count_is_understood(words, count):
    assert read(words).count == count


def test_the_newest_invoice_is_one_invoice():
    assert read("my latest invoice").newest
    assert not read("my latest invoices").newest


def test_a_preference_is_kept_word_for_word():
    words = "keep in mind: answers  in\r\n one\u2028line 請求書"
    assert read(words).preference == "answers  in\r\n one\u2028line 請求書"


def test_an_answer_completes_the_request():
    asked = read("Why was invoice 8812 higher?").answered_by(read("the compute line"))
    assert (asked.wanted, asked.invoices, asked.lines, asked.direction) == (
        Intent.EXPLAIN,
        (8812,),
        ("compute",),
        1,
    )


def test_an_answer_that_asks_for_something_else_replaces_the_request():
    first = read("Why was invoice 8812 higher?")
    assert first.answered_by(read("list my invoices")).wanted is Intent.LIST
    assert first.answered_by(read("show invoice 8767")).invoices == (8767,)
    assert first.answered_by(read("show invoice 8767")).wanted is Intent.SHOW


def test_a_later_answer_wins_over_an_earlier_one():
    asked = read("invoice 8812, the compute line").answered_by(read("the egress line"))
    assert asked.lines == ("egress",)


@pytest.mark.parametrize("word", ["all ", "invoice #", "check ", "remember ", "line "])
def test_only_the_start_of_a_huge_message_is_read(word):
    reading = read(word * 2_000_000, LINES)
    assert len(reading.text) == READ_LIMIT
