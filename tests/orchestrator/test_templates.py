"""Templates: every word translatable, one spelling, nothing from another host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template.loader import get_template

from orchestrator.config import (
    Configuration,
    Output,
    Sessions,
    Toggle,
    every_configuration,
)
from orchestrator.narrative import narrative
from orchestrator.parts import NAMES
from orchestrator.predict import predict
from orchestrator.sentences import Phrase
from orchestrator.texts import STEPS, TEXTS
from web.security import CONTENT_SECURITY_POLICY

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted(
    path
    for folder in ("web/templates", "orchestrator/templates")
    for path in (ROOT / folder).rglob("*")
    if path.is_file()
)
STATIC = sorted((ROOT / "web/static/web").iterdir())
NAMESPACE = "http://www.w3.org/2000/svg"
GAP = Phrase("outcome.answers"), Phrase("outcome.asks")
STAYS = {"context": "ctx-41", "first": "B", "second": "B"}
MOVES = {**STAYS, "second": "A"}

# A key's own name is not a word of ours.
_NOT_WORDS = re.compile(
    r"\{% comment %\}.*?\{% endcomment %\}"
    r"|\{% blocktranslate.*?\{% endblocktranslate %\}"
    r"|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<kbd>.*?</kbd>",
    re.DOTALL,
)
_SPOKEN = re.compile(r'\b(?:title|alt|aria-label|placeholder)="([^"]*)"')


def relative(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TEMPLATES, ids=relative)
def test_no_bare_text(path):
    source = _NOT_WORDS.sub("", path.read_text())
    spoken = _SPOKEN.findall(source)
    text = re.sub(r"<[^>]*>", " ", source)
    assert not re.findall(r"[^\W\d_]+", " ".join([text, *spoken]))


@pytest.mark.parametrize("path", [*TEMPLATES, *STATIC], ids=relative)
def test_no_address_of_another_host(path):
    source = path.read_text().replace(NAMESPACE, "")
    assert not re.search(r"(?:https?:|wss?:|url\(\s*[\"']?)//", source)


@pytest.mark.parametrize("path", TEMPLATES, ids=relative)
def test_no_inline_script_or_style(path):
    source = path.read_text()
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)", source)
    assert not re.search(r"\s(?:style|on\w+|hx-on[\w:-]*)=", source)


@pytest.mark.parametrize("path", TEMPLATES, ids=relative)
def test_nothing_captured_is_trusted_as_markup(path):
    assert not re.search(r"\|\s*safe\b|autoescape off", path.read_text())


def test_the_policy_knows_our_own_files_only():
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'self'")
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_one_element_with_its_own_name(name):
    source = get_template(f"orchestrator/parts/{name}.html").template.source
    body = re.sub(r"\{%.*?%\}", "", source).strip()
    tag = re.match(rf'<(\w+) id="{name}" hx-swap-oob="true"', body)[1]
    assert body.endswith(f"</{tag}>")


def test_weights():
    sizes = {path.name: path.stat().st_size for path in STATIC}
    scripts = sum(size for name, size in sizes.items() if name.endswith(".js"))
    assert sizes["app.css"] <= 30 * 1024
    assert scripts <= 25 * 1024


# the narrative


def _values(configuration):
    return MOVES if predict(configuration).moves else STAYS


def _fourth(configuration, values):
    return narrative(4, configuration, values).paragraphs[1]


@pytest.mark.parametrize("step", STEPS)
def test_every_configuration_has_its_words(step):
    for configuration in every_configuration():
        words = narrative(step, configuration, _values(configuration))
        for text in (words.title, words.look, words.ask, words.holds):
            assert text
        assert all(words.paragraphs)
        assert "%(" not in " ".join(words.paragraphs)


def test_every_text_is_said_by_some_configuration():
    said = set()

    def overheard(text):
        said.add(text)
        return text

    for step in STEPS:
        for configuration in every_configuration():
            narrative(step, configuration, STAYS, overheard)
            narrative(step, configuration, MOVES, overheard)
            narrative(step, configuration, MOVES, overheard, GAP)
    assert said >= set(TEXTS.values())


def test_the_fourth_step_tells_seven_endings_apart():
    told = {
        (c.continuity, c.affinity, c.sessions): _fourth(c, _values(c))
        for c in every_configuration()
    }
    assert len(set(told.values())) == 7
    remembered = told[Toggle.ON, Toggle.ON, Sessions.MEMORY]
    assert "sees five" in remembered


def test_the_fourth_step_tells_where_the_reply_went_not_where_it_should():
    assert "A has never heard of ctx-41" in _fourth(Configuration(), MOVES)
    alone = _fourth(Configuration(affinity=Toggle.OFF), STAYS)
    assert "no other replica" in alone
    assert "sees five" in alone


def test_a_surprise_is_told_as_measured():
    for configuration in every_configuration():
        words = narrative(4, configuration, MOVES, gap=GAP)
        assert "says “answers”, the run says “asks”" in words.paragraphs[1]
        assert "five" not in " ".join([*words.paragraphs, words.look])
        restarted = any("restarted" in text for text in words.paragraphs)
        assert restarted == (configuration.sessions is Sessions.MEMORY)


def test_what_leaves_is_told_per_event_only():
    for configuration in every_configuration():
        paragraphs = narrative(4, configuration, _values(configuration)).paragraphs
        assert (len(paragraphs) == 3) == (configuration.output is Output.PER_EVENT)
