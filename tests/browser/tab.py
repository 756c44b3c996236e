"""A tab on the demo's pages, in the words of the story."""

from __future__ import annotations

from orchestrator import visitors
from tests.orchestrator.stored import OWNER

FLIPS = {
    "continuity": ("#switch-continuity", "f", "off"),
    "affinity": ("#switch-affinity", "a", "off"),
    "output": ("#switch-output button[aria-pressed=false]", "o", "per-event"),
    "sessions": ("#switch-sessions button[aria-pressed=false]", "h", "shared"),
}


class Tab:
    """One page, with everything it asked for and complained about."""

    def __init__(self, context, web_url):
        self.url = web_url
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self.sockets: list[object] = []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("websocket", lambda socket: self.sockets.append(socket))
        self.page.on("console", self._heard)

    def _heard(self, message):
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def expect_complaints(self):
        """Let the browser say what it wants: the test makes something fail."""
        self.complaints = _Unheard()
        return self

    def visit(self, path):
        self.page.goto(self.url + path)
        return self

    def be_owner(self):
        """Come as the browser that started the stored runs."""
        cookie = {"name": visitors.COOKIE, "value": OWNER, "url": self.url}
        self.page.context.add_cookies([cookie])
        return self

    def live(self):
        """Wait until the socket is open."""
        self.page.wait_for_selector("#link-state[data-state=live]")
        return self

    @property
    def run_id(self):
        return self.page.get_attribute("#cursor", "data-run")

    def cursor(self, name):
        return self.page.get_attribute("#cursor", f"data-{name}")

    def until(self, **attributes):
        """Wait until the cursor says so."""
        wanted = "".join(f'[data-{k}="{v}"]' for k, v in attributes.items())
        self.page.wait_for_selector(f"#cursor{wanted}", state="attached")
        return self

    def until_not(self, **attributes):
        """Wait until the cursor says otherwise."""
        shown = "".join(f'[data-{k}="{v}"]' for k, v in attributes.items())
        self.page.wait_for_selector(f"#cursor:not({shown})", state="attached")
        return self

    def text(self, selector):
        return " ".join(self.page.inner_text(selector).split())

    def verdict(self):
        """Wait for the verdict and return how the strip looks."""
        self.page.wait_for_selector("#verdict:not([data-strip=open])")
        return self.page.get_attribute("#verdict", "data-strip")

    def answer(self, name, attribute):
        return self.page.get_attribute(f"#answer-{name}", f"data-{attribute}")

    def answers(self):
        """Return the five answers as ``walkthrough --json`` words them."""
        counts = {
            name: int(self.answer("released", name))
            for name in ("artifacts", "intermediate", "bytes")
        }
        switches = self.answer("switch", "switches")
        return {
            "path": self.answer("replica", "path").split(","),
            "lookup": {
                "asked_for": self.answer("lookup", "asked-for"),
                "found": self.answer("lookup", "found") == "true",
                "stored_as": self.answer("lookup", "stored-as"),
            },
            "seen": int(self.answer("seen", "events")),
            "released": counts,
            "switches": switches.split(",") if switches else [],
            "outcome": self.answer("switch", "outcome"),
        }


class _Unheard(list):
    def append(self, _):
        pass


def answers_in(report):
    """Return the same of an object that ``walkthrough --json`` printed."""
    return {
        "path": report["path"],
        "lookup": report["lookup"],
        "seen": report["events_seen"][-1],
        "released": report["released"],
        "switches": report["switches"],
        "outcome": report["outcome"],
    }
