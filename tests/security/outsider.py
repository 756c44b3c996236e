"""Uses a demo as peers, browsers and strangers may, and keeps all that is said."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.peer import token
from tests.security.bindings import BINDINGS, ask, message
from tests.security.heard import Heard
from tests.security.leaky import MISCHIEF

QUESTION = "Why was invoice 8812 higher than last month?"
HTML_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
ENDS = {"turn-ended", "step-failed"}
SECONDS = 15


class Outsider:
    """Uses the demo as everybody may, and keeps all that it is told."""

    def __init__(self, demo, canaries):
        self.demo = demo
        self.canaries = canaries
        self.heard = Heard()
        self.http = httpx.AsyncClient(timeout=SECONDS)
        self.phase = ""

    async def get(self, where, url, **options):
        answer = await self.http.get(url, **options)
        self.heard.hear(f"{where} {self.phase}", answer)
        return answer

    async def post(self, where, url, **options):
        answer = await self.http.post(url, **options)
        self.heard.hear(f"{where} {self.phase}", answer)
        return answer

    async def close(self):
        await self.http.aclose()

    @contextmanager
    def during(self, word):
        """Do what is done while something is broken."""
        mischief = self.demo.var_dir / MISCHIEF
        mischief.write_text(word)
        self.phase = word
        try:
            yield
        finally:
            mischief.unlink()
            self.phase = ""

    # A peer

    async def speak(self, subject, where):
        """Use every method on both bindings."""
        bearer = await token(self.demo, subject)
        headers = {"Authorization": f"Bearer {bearer}", "A2A-Version": "1.0"}
        async with httpx.AsyncClient(
            base_url=where, headers=headers, timeout=SECONDS
        ) as http:
            task_id = "unknown"
            for text in (QUESTION, f"Remember {self.canaries.visible}"):
                for binding in BINDINGS:
                    for method in ("SendMessage", "SendStreamingMessage"):
                        answer = await ask(http, binding, method, message(text))
                        self.heard.hear(f"{binding} {self.phase}", answer)
                        found = re.search(r'"taskId": ?"([\w-]+)"', answer.text)
                        task_id = found[1] if found else task_id
            for binding in BINDINGS:
                for method in ("GetTask", "ListTasks", "SubscribeToTask", "CancelTask"):
                    params = {} if method == "ListTasks" else {"id": task_id}
                    answer = await ask(http, binding, method, params)
                    self.heard.hear(f"{binding} {self.phase}", answer)
            answer = await http.get("/demo/ledger")
            self.heard.hear(f"ledger {self.phase}", answer)

    async def ask_for_a_token(self):
        """Hear what the issuer says instead of giving one."""
        secret = (self.demo.var_dir / "client-workshop").read_text()
        answer = await self.http.post(
            f"{self.demo.web_url}/oauth/token",
            data={"grant_type": "client_credentials", "tenant": "acme"},
            auth=("workshop", secret),
        )
        if answer.status_code != 200:
            self.heard.hear(f"issuer {self.phase}", answer)

    async def knock(self, where):
        """Ask, all at once, for what is refused or open, with a token that is none."""
        bad = self.canaries.bearer
        ways = [
            {},
            {"Authorization": f"Bearer {bad}"},
            {"Authorization": f"Basic {bad}"},
            {"Authorization": f"Bearer {bad}", "Host": "evil.example"},
        ]
        open_paths = ["/.well-known/agent-card.json", "/healthz", "/readyz"]
        async with asyncio.TaskGroup() as together:
            for headers in ways:
                for path in ("/a2a/", "/a2a/rest/tasks", "/nothing", "/admin/"):
                    for ask_for in (self.get, self.post):
                        call = ask_for("refusal", where + path, headers=headers)
                        together.create_task(call)
            for path in open_paths:
                together.create_task(self.get("open", where + path))

    # A browser

    async def play(self):
        """Play the story on the pages, as far as it goes."""
        web = self.demo.web_url
        page = await self.get("page", f"{web}/")
        found = HTML_TOKEN.search(page.text)
        if not found:
            return
        form = {"csrfmiddlewaretoken": found[1]}
        started = await self.post("page", f"{web}/runs/", data={**form, "send": "1"})
        run_id = re.search(r"/runs/([\w-]+)/", started.headers.get("location", ""))
        if not run_id:
            return
        run = f"{web}/runs/{run_id[1]}"
        await self.until_rest(run, 1)
        await self.look(run)
        await self.post("page", f"{run}/next/", data={**form, "turn": "2"})
        await self.post("page", f"{run}/retry/", data={**form, "turn": "1"})
        await self.until_rest(run, 2)
        await self.look(run)
        await self.post("page", f"{run}/flip/", data={**form, "output": "per-event"})
        await self.post("page", f"{run}/again/", data=form)

    async def until_rest(self, run, ends):
        """Wait until so many turns of a run have ended, if it can be read."""
        async with asyncio.timeout(SECONDS):
            while True:
                answer = await self.http.get(f"{run}.json")
                if answer.status_code != 200:
                    return
                kinds = [event["kind"] for event in answer.json()["events"]]
                if sum(kind in ENDS for kind in kinds) >= ends:
                    return
                await asyncio.sleep(0.05)

    async def look(self, run):
        """Look at a run in every way there is; at all its events when all is well."""
        recorded = await self.get("run", f"{run}.json")
        last = 0
        if recorded.status_code == 200:
            last = recorded.json()["events"][-1]["seq"]
        for step in range(6):
            await self.get("page", f"{run}/walk/{step}/")
        for seq in range(1, 1 if self.phase else last + 1, 4):
            await self.get("page", f"{run}/walk/0/?event={seq}", follow_redirects=True)
        await self.get("page", f"{run}/events/?step=0&after=0")
        await self.listen(run)

    async def listen(self, run):
        """Stand at every step on the run's socket, and hear what it sends."""
        path = run.replace("http", "ws").replace("/runs/", "/ws/runs/") + "/"
        cookies = "; ".join(f"{k}={v}" for k, v in self.http.cookies.items())
        try:
            async with connect(
                path,
                origin=self.demo.web_url,
                additional_headers={"Cookie": cookies},
            ) as socket:
                for step in range(6):
                    await socket.send(json.dumps({"do": "goto", "step": step}))
                    async with asyncio.timeout(SECONDS):
                        self.heard.hear(f"frame {self.phase}", await socket.recv())
                await socket.send("{")
                self.heard.hear(f"frame {self.phase}", await socket.recv())
        except InvalidStatus as refused:
            self.heard.hear(f"frame {self.phase}", refused.response.body)
        except (ConnectionClosed, TimeoutError) as closed:
            self.heard.hear(f"frame {self.phase}", closed)

    async def administer(self):
        """Read every list of the admin, and the newest row of each."""
        web = self.demo.web_url
        found = HTML_TOKEN.search((await self.get("admin", f"{web}/admin/login/")).text)
        form = {"username": "presenter", "password": "a-phrase-for-this-test"}
        form["csrfmiddlewaretoken"] = found[1]
        await self.post("admin", f"{web}/admin/login/?next=/admin/", data=form)
        index = await self.get("admin", f"{web}/admin/")
        lists = set(re.findall(r'href="(/admin/\w+/\w+/)"', index.text))
        assert len(lists) >= 5
        for path in sorted(lists):
            rows = await self.get("admin", web + path)
            for row in re.findall(rf'href="({path}[^"?]+/change/)', rows.text)[:2]:
                await self.get("admin", web + row)
