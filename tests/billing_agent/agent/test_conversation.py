"""What the scripted model can see: contents in, a view out."""

from __future__ import annotations

from google.genai import types

from billing_agent.agent.conversation import view

INVOICE = {"number": 7, "lines": [{"line": "compute"}, {"line": "storage"}]}


def user(*texts):
    return types.Content(role="user", parts=[types.Part(text=text) for text in texts])


def call(name, **args):
    made = types.FunctionCall(name=name, args=args)
    return types.Content(role="model", parts=[types.Part(function_call=made)])


def result(tool, **answer):
    given = types.FunctionResponse(name=tool, response=answer)
    return types.Content(role="user", parts=[types.Part(function_response=given)])


def test_nothing_is_in_view_of_an_empty_conversation():
    seen = view([])
    assert (seen.words, seen.invoice, seen.results, seen.asked) == ((), None, (), False)


def test_the_latest_message_counts():
    seen = view([user("one"), user("two", "three")])
    assert seen.words == ("two\nthree",)


def test_a_message_after_a_question_is_read_together_with_the_first():
    seen = view([user("why 7?"), call("ask_user", question="which?"), user("compute")])
    assert seen.words == ("why 7?", "compute")
    assert not seen.asked


def test_a_response_to_the_question_is_the_same_message():
    asked = [user("why 7?"), call("ask_user", question="which?")]
    seen = view([*asked, result("ask_user", answer="compute")])
    assert seen.words == ("why 7?", "compute")


def test_a_data_part_beside_the_response_belongs_to_it():
    answer = result("ask_user", answer="compute")
    answer.parts.append(types.Part(text='{"invoice": 8}'))
    seen = view([user("why?"), call("ask_user", question="which?"), answer])
    assert seen.words == ("why?", 'compute\n{"invoice": 8}')


def test_a_question_closed_without_an_answer_no_longer_waits():
    asked = [user("why 7?"), call("ask_user", question="which?")]
    seen = view([*asked, result("ask_user", status="cancelled"), user("the bill")])
    assert seen.words == ("the bill",)


def test_an_invoice_stays_in_view_and_results_do_not():
    looked_up = [
        user("7"),
        call("get_invoice", number=7),
        result("get_invoice", **INVOICE),
    ]
    seen = view(looked_up)
    assert seen.invoice == INVOICE
    assert seen.lines == ("compute", "storage")
    assert seen.answers("get_invoice") == [INVOICE]
    later = view([*looked_up, user("and?")])
    assert later.invoice == INVOICE
    assert later.results == ()


def test_a_failed_or_cancelled_look_up_shows_no_invoice():
    seen = view([user("9"), result("get_invoice", error="no invoice 9")])
    assert seen.invoice is None
    assert seen.results[0].error == "no invoice 9"
    assert seen.answers("get_invoice") == []
    assert view([result("get_invoice", status="cancelled")]).invoice is None


def test_thoughts_are_not_words():
    thought = types.Content(role="user", parts=[types.Part(text="hm", thought=True)])
    assert view([thought]).words == ()
