"""What README and docs say exists, and what they quote is what is printed."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from functools import cache

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from billing_agent.agent.database import THREADS
from billing_agent.executor.config import ExecutorConfig
from billing_agent.router.contexts import TaskContexts
from orchestrator import database
from orchestrator.config import Configuration
from orchestrator.verdict import verdict
from tests.orchestrator.recordings import Happened, recorded
from tests.statements import STATEMENTS
from tests.story.truth import ROWS
from web import environment, pooling
from web.management.commands import replica

ROOT = environment.BASE_DIR
PAGES = {path.name: path for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}
APPS = ("billing_agent", "web")
OURS = {name for name, app in get_commands().items() if app in APPS}

QUOTED = re.compile(r"`([^`\n]+)`")
REFERENCE = re.compile(
    r"((?:billing_agent|orchestrator|web|tests|deploy|benchmarks)/[\w/.-]*)(?::([\w.]+))?"
)
MANAGE = re.compile(r"manage\.py (\w+)([^`|\n]*)")
HELP = re.compile(r"^```\n(usage: manage\.py (\w+) .*?)^```$", re.MULTILINE | re.DOTALL)
# Spoken of, and no settings of this project.
OTHER_NAMES = {"ADK_DEBUG_ERRORS"}


@cache
def text_of(page):
    return PAGES[page].read_text(encoding="utf-8")


def section_of(page, heading):
    return text_of(page).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def table_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def as_words(text):
    return " ".join(text.split())


def defined_in(path):
    """Return the names a module defines, those in classes with the class's name."""
    found = set()
    waiting = [("", ast.parse(path.read_text(encoding="utf-8")))]
    while waiting:
        prefix, node = waiting.pop()
        for child in node.body:
            named = [child.name] if hasattr(child, "name") else []
            if isinstance(child, ast.Assign):
                named = [target.id for target in child.targets if hasattr(target, "id")]
            if isinstance(child, ast.AnnAssign):
                named = [child.target.id]
            found.update(prefix + name for name in named)
            if isinstance(child, ast.ClassDef):
                waiting.append((f"{prefix}{child.name}.", child))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_files_and_names_exist(page):
    named = [REFERENCE.fullmatch(quote) for quote in QUOTED.findall(text_of(page))]
    for path, name in (match.groups() for match in named if match):
        assert (ROOT / path).exists(), path
        assert not name or name in defined_in(ROOT / path), f"{path}:{name}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_pages(page):
    for target in re.findall(r"\]\(([^)#]+\.md)", text_of(page)):
        assert (PAGES[page].parent / target).is_file(), target


@pytest.mark.parametrize("page", PAGES)
def test_settings_exist(page):
    quotes = [quote.partition("=")[0] for quote in QUOTED.findall(text_of(page))]
    names = {q for q in quotes if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", q)}
    states = {name for name in names if name.startswith("TASK_STATE_")}
    compose = re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text())
    known = {row.name for row in environment.SETTINGS} | OTHER_NAMES | {*compose}
    assert names - states <= known


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_their_options_exist(page):
    for name, rest in MANAGE.findall(text_of(page)):
        if name == "NAME":
            continue
        assert name in get_commands(), name
        parser = load_command_class(get_commands()[name], name).create_parser("", name)
        known = parser._option_string_actions
        assert set(re.findall(r"--[\w-]+", rest)) <= set(known), (name, rest)


def test_every_command_is_spoken_of():
    spoken_of = {name for page in PAGES for name, _ in MANAGE.findall(text_of(page))}
    assert spoken_of >= OURS


@pytest.mark.parametrize("page", PAGES)
def test_verbs_exist(page):
    verbs = re.findall(
        r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    code = "\n".join(re.findall(r"^```\n(.*?)^```$", text_of(page), re.M | re.S))
    named = re.findall(r"`make ([a-z]+)", text_of(page))
    named += re.findall(r"^make ([a-z]+)", code, re.MULTILINE)
    assert set(named) <= set(verbs)


def test_quoted_help_is_what_is_printed(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    quoted = HELP.findall(text_of("README.md"))
    assert [name for _, name in quoted] == ["demo", "walkthrough"]
    for text, name in quoted:
        command = load_command_class(get_commands()[name], name)
        printed = command.create_parser("manage.py", name).format_help()
        assert as_words(text) == as_words(printed)


def test_contract_has_every_statement():
    rows = table_of(section_of("executor.md", "Statements"))
    assert {int(number): title for number, title, _ in rows} == STATEMENTS
    assert len(rows) == len(STATEMENTS)


def test_contract_has_every_field_of_the_configuration():
    rows = table_of(section_of("executor.md", "Configuration"))
    assert [row[0].strip("`") for row in rows] == [
        f.name for f in fields(ExecutorConfig)
    ]


def test_truth_table_is_the_one_that_is_measured():
    written = {}
    for row in table_of(section_of("README.md", "The truth table")):
        *key, path, turn, seen, _ = row
        written[tuple(key)] = (path.replace(", ", ""), turn.strip("*"), int(seen))
    assert written == {
        key: (path, outcome, seen[1]) for key, (path, outcome, seen, _) in ROWS.items()
    }


@pytest.mark.parametrize(
    ("happened", "switches"),
    [
        (Happened(), {}),
        (
            Happened(affinity=False, replicas=("replica-b", "replica-a"), found=False),
            {"affinity": "off"},
        ),
    ],
    ids=["remembered", "forgot"],
)
def test_verdicts_shown_are_those_of_such_a_run(happened, switches):
    configuration = Configuration.parse({**Configuration().as_dict(), **switches})
    found = verdict(recorded(happened), configuration)
    assert found.as_predicted
    plural = "s" * (found.released.artifacts != 1)
    shown = (
        f"{found.sentence} asked back {found.asked_back}\N{MULTIPLICATION SIGN}"
        f" path {'→'.join(found.path)} sessions {found.sessions}"
        f" saw {', '.join(map(str, found.events_seen))}"
        f" released {found.released.artifacts} artifact{plural}"
        f" · {found.released.intermediate} intermediate"
    )
    assert shown in as_words(text_of("README.md"))


async def test_connections_are_counted_as_the_code_opens_them():
    django = THREADS + replica._ADMIN_CONNECTIONS
    contexts = TaskContexts(settings.DATABASE_URL)._pool.max_size
    recorder = database.new_pool().max_size
    stores = settings.POOL_SIZE
    expected = {
        "replica": [stores, 1, 1, django, 0, recorder],
        "router": [0, 0, 0, 0, contexts, recorder],
        "web": [0, 1, 0, pooling.SIZE, 0, recorder],
        "walkthrough, matrix": [0, 0, 0, 0, 0, recorder],
        "sweep": [2, 0, 0, 0, 0, 0],
    }
    section = section_of("operations.md", "Connections")
    rows = {row[0]: row[1:] for row in table_of(section)}
    counted = {
        name: [0 if cell == "–" else int(cell) for cell in cells]
        for name, cells in rows.items()
    }
    assert counted == {name: [*each, sum(each)] for name, each in expected.items()}
    demo = 2 * sum(expected["replica"]) + sum(expected["router"] + expected["web"])
    assert f"= {demo}," in section
