"""The inspector as a person uses it, with a mouse, a keyboard or a screen reader, and as other sites would like to."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from .pages import Inspector
from .served import BOGDAN, INES, KEY, Served, served

VIEWS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "callers": ((), "", "Callers"),
    "recalls": (("recalls",), "", "Live recalls"),
    "profile": (("caller", INES), "", INES),
    "memories": (("caller", INES, "memories"), "", INES),
    "calls": (("caller", INES, "calls"), "", INES),
    "call": (("caller", INES, "calls", "lk-shop-102"), "?turn=1", "Call"),
    "search": (("caller", INES, "search"), "?q=where%20do%20I%20live", INES),
    "nothing": (("nowhere",), "", "There is no such page"),
}
"""Address and title of each view."""


def show(page: Inspector, view: str) -> None:
    segments, query, title = VIEWS[view]
    page.go(*segments, query=query)
    page.heading(title)
    page.until("//main[not(@aria-busy)]")


# -- the key


def test_the_key_opens_it_and_a_wrong_one_does_not(locked: Inspector) -> None:
    """Brief of the inspector: the user enters the key once."""
    locked.driver.get(locked.url + "/")
    locked.heading("Enter the key")
    locked.enter_key("wrong")
    assert locked.until("//*[@role='alert']").text == "This is not the key of this service."
    locked.enter_key("schlüssel ✓")
    locked.until("//*[@role='alert']")
    locked.enter_key(KEY)
    locked.heading("Callers")
    locked.link(INES)
    locked.driver.refresh()
    locked.heading("Callers")


def test_locking_forgets_the_key_and_takes_the_data_off_the_screen(page: Inspector) -> None:
    """Brief of the inspector: the page itself holds nothing."""
    show(page, "profile")
    page.button("Lock").click()
    page.heading("Enter the key")
    assert INES not in page.driver.page_source
    assert page.driver.execute_script("return sessionStorage.length + localStorage.length") == 0
    assert page.driver.get_cookies() == []
    page.driver.back()
    page.heading("Enter the key")


# -- looking


def test_from_a_caller_to_the_turn_that_says_a_memory(page: Inspector) -> None:
    """Brief of the inspector: callers, memories with history and source turn, calls with transcripts."""
    page.link(INES).click()
    page.heading(INES)
    page.link("Memories").click()
    page.link("I live in Aveiro now.").click()
    page.heading("Memory")
    assert "I live in Coimbra." in page.text()
    assert page.until("//mark").text == "Silent, thank you. I moved, I live in Aveiro now."
    page.link("lk-shop-102").click()
    page.heading("Call")
    assert page.until("//mark").text == "Silent, thank you. I moved, I live in Aveiro now."
    assert "processed" in page.text()


def test_search_shows_what_is_recalled_with_its_scores(page: Inspector) -> None:
    """Brief of the inspector: a search box that shows what recall would return and why."""
    page.go("caller", INES, "search")
    field = page.labelled("What the caller says")
    field.send_keys("where do I live", Keys.ENTER)
    first = page.until("//ol[@class='hits']/li[1]")
    assert "I live in Aveiro now." in first.text
    names = [meter.get_attribute("aria-label") or "" for meter in first.find_elements(By.TAG_NAME, "meter")]
    assert [name.split(":")[0] for name in names][:2] == ["Similarity", "Full text"]
    assert any(name.startswith("Recency:") for name in names)
    page.until("//*[@role='status']/p[contains(., 'recalled')]", shown=False)


def test_recalls_appear_while_one_looks(page: Inspector, server: Served) -> None:
    """Brief of the inspector: live view of recalls."""
    show(page, "recalls")
    body: dict[str, object] = {"containerTag": INES, "q": "is anything <b>blue</b> there", "threshold": 0.1}
    server.post("/v4/search", body)
    page.until_text("is anything <b>blue</b> there")
    page.until("//*[@role='status']/p[contains(., 'new recall')]", shown=False)
    page.until("//summary").click()
    page.link("I prefer blue.").click()
    page.heading("Memory")


def test_many_memories_come_in_pages(page: Inspector, server: Served) -> None:
    """Brief of the inspector: works with 10,000 memories (paged)."""
    for first in (0, 60):
        items = [{"content": f"Fact number {number}"} for number in range(first, first + 60)]
        server.post("/v4/memories", {"containerTag": "many", "memories": items})
    page.go("caller", "many", "memories")
    page.until_text("Page 1 of 3")
    rows = "//tbody/tr"
    assert len(page.driver.find_elements(By.XPATH, rows)) == 50
    page.link("Next").click()
    page.until_text("Page 2 of 3")
    page.link("Next").click()
    page.until_text("Page 3 of 3")
    assert len(page.driver.find_elements(By.XPATH, rows)) == 20
    page.driver.back()
    page.until_text("Page 2 of 3")


# -- taking away


def remember(server: Served, tag: str, *texts: str) -> None:
    server.post("/v4/memories", {"containerTag": tag, "memories": [{"content": text} for text in texts]})


def memories(server: Served, tag: str) -> list[str]:
    answer = server.post("/v4/profile", {"containerTag": tag})
    return [line.partition("] ")[2] for line in answer.json()["profile"]["dynamic"]]


def test_forgetting_asks_first(page: Inspector, server: Served) -> None:
    """Brief of the inspector: destructive actions ask first."""
    remember(server, "forgetful", "Likes tea", "Likes coffee")
    page.go("caller", "forgetful")
    page.button("Forget: " + page.until("//li/a[contains(., 'Likes tea')]").text).click()
    dialog = page.until("//dialog[@open]")
    assert "Likes tea" in dialog.text
    assert page.focused().text == "Cancel"
    page.focused().send_keys(Keys.ESCAPE)
    page.until("//dialog[not(@open)]", shown=False)
    assert (page.focused().get_attribute("aria-label") or "").startswith("Forget: ")
    assert {*memories(server, "forgetful")} == {"Likes tea", "Likes coffee"}
    page.focused().send_keys(Keys.ENTER)
    page.until("//dialog[@open]")
    page.button("Cancel").click()
    page.until("//dialog[not(@open)]", shown=False)
    assert {*memories(server, "forgetful")} == {"Likes tea", "Likes coffee"}
    page.focused().send_keys(Keys.ENTER)
    page.button("Forget it").click()
    page.gone("Likes tea")
    assert memories(server, "forgetful") == ["Likes coffee"]


def test_a_caller_is_erased_only_when_the_tag_was_typed(page: Inspector, server: Served) -> None:
    """Brief of the inspector: destructive actions ask first."""
    remember(server, "leaving", "Likes tea")
    page.go("caller", "leaving")
    page.button("Erase this caller…").click()
    act = page.button("Erase everything")
    assert not act.is_enabled()
    entry = page.labelled("Type leaving to confirm")
    entry.send_keys("leavin", Keys.ENTER)
    assert not act.is_enabled()
    assert memories(server, "leaving") == ["Likes tea"]
    entry.send_keys("g", Keys.ENTER)
    page.heading("Callers")
    page.gone("leaving")
    assert memories(server, "leaving") == []


def test_a_call_is_erased_after_a_question(page: Inspector, server: Served) -> None:
    """Brief of the inspector: forget and erase."""
    body: dict[str, object] = {
        "containerTag": "erasing",
        "customId": "lk-gone",
        "content": "Caller: Hello there.",
    }
    server.post("/v3/documents", body)
    page.go("caller", "erasing", "calls")
    page.link("lk-gone").click()
    page.button("Erase this call…").click()
    page.button("Erase it").click()
    page.until_text("Nothing is stored yet.")
    assert server.http.get("/v3/documents/lk-gone").status_code == 404


# -- hostile texts

HOSTILE = [
    "<img src=x onerror='window.hacked=1'>",
    "<script>window.hacked=1</script>",
    '"><svg onload="window.hacked=1">',
    "<a href='javascript:window.hacked=1'>here</a>",
    "</li></ul></main><h1>Callers</h1><iframe srcdoc='<script>parent.hacked=1</script>'>",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1}",
    "<style>*{display:none}</style><base href='//example.com/'><meta http-equiv=refresh content='0;url=//example.com'>",
    "\u202eright to left\u202c and \u0000 control",
]


def test_no_text_of_a_caller_becomes_markup_in_any_view(page: Inspector, server: Served) -> None:
    """Brief of the inspector: no HTML injection, with hostile memory texts, names and metadata."""
    tag = "hostile"
    name = "../../?page=2#/caller/rider_ines/<img src=x onerror=window.hacked=1>"
    lines = "\n".join(
        f"[2026-11-01T10:00:{number:02}.000Z] Caller: {text}" for number, text in enumerate(HOSTILE)
    )
    metadata = {HOSTILE[0]: HOSTILE[1], "__proto__": "x"}
    server.post(
        "/v3/documents",
        {
            "containerTag": tag,
            "customId": name,
            "content": lines,
            "metadata": metadata,
            "entityContext": HOSTILE[0],
        },
    )
    items = [{"content": text, "isStatic": True, "metadata": metadata} for text in HOSTILE]
    server.post("/v4/memories", {"containerTag": tag, "memories": items})
    for text in HOSTILE:
        server.post("/v4/search", {"containerTag": tag, "q": text, "searchMode": "hybrid", "threshold": 0})
    page.console()
    page.go("caller", tag)
    page.heading(tag)
    for text in HOSTILE[:-1]:
        assert text in page.text()
    page.link("Memories").click()
    page.link(HOSTILE[0]).click()
    page.heading("Memory")
    assert HOSTILE[1] in page.text()
    page.go("caller", tag, "calls")
    page.link(name).click()
    page.heading("Call")
    for text in HOSTILE[:-1]:
        assert text in page.text()
    page.go("caller", tag, "search")
    page.labelled("What the caller says").send_keys(HOSTILE[0], Keys.ENTER)
    page.until("//ol[@class='hits']/li")
    show(page, "recalls")
    page.until_text(HOSTILE[2])
    for address in (
        "caller/%E0%A4%A",
        "caller/<img src=x onerror=window.hacked=1>",
        "caller/a/calls/javascript:1",
    ):
        page.driver.execute_script("location.hash = arguments[0]", f"#/{address}")
        page.until("//main[not(@aria-busy)]//h1")
    assert page.driver.execute_script("return window.hacked") is None
    assert (
        page.driver.find_elements(By.CSS_SELECTOR, "main :is(img, svg, script, style, iframe, base, meta)")
        == []
    )
    elsewhere = "return [...document.links].filter((one) => one.origin !== location.origin).length"
    assert page.driver.execute_script(elsewhere) == 0
    assert [line for line in page.console() if "404" not in line and "400" not in line] == []


ATTACKS = {
    "require-trusted-types-for": "document.body.innerHTML = '<b>markup</b>'",
    "script-src-elem": "const one = document.createElement('script'); one.append('hacked = 1'); main.append(one)",
    "script-src-attr": "main.setAttribute('onclick', 'window.hacked = 1'); main.click()",
    "style-src-attr": "main.setAttribute('style', 'display: none')",
    "img-src": "const one = document.createElement('img'); one.src = 'http://127.0.0.1:9/'; main.append(one)",
    "connect-src": "fetch('http://127.0.0.1:9/').catch(() => {})",
    "frame-src": "const one = document.createElement('iframe'); one.src = 'http://127.0.0.1:9/'; main.append(one)",
    "form-action": "const one = document.createElement('form'); one.action = '/stolen'; main.append(one); one.submit()",
}
"""What a fault in the page could be made to do, by the part of the policy that stops it."""


@pytest.mark.parametrize("directive", ATTACKS)
def test_the_policy_stops_what_a_fault_in_the_page_would_let_through(page: Inspector, directive: str) -> None:
    """Brief of the inspector: strict CSP without unsafe-inline."""
    # Answers when the browser reports that it has stopped something, and else never.
    stopped = page.driver.execute_async_script(
        f"""const done = arguments[0], main = document.getElementById("main");
        addEventListener("securitypolicyviolation", (report) => done(report.effectiveDirective));
        try {{ {ATTACKS[directive]} }} catch {{ /* reported, too */ }}"""
    )
    assert stopped.split(" ")[0] in (directive, "require-trusted-types-for")
    assert page.driver.execute_script("return window.hacked") is None
    page.console()


@contextmanager
def another_site(inspector: str) -> Generator[str]:
    """A page on another port of this machine, which browsers count as the same site but another origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = f"<!doctype html><title>Other</title><iframe id=f src='{inspector}/'></iframe>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{site.server_address[1]}"
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


def test_another_site_can_neither_frame_it_nor_ask_it_even_with_the_key(
    page: Inspector, server: Served
) -> None:
    """Brief of the inspector: CORS closed, CSRF impossible, cross-site pages cannot use it, frame-ancestors."""
    remember(server, "target", "Likes tea")
    with another_site(page.url) as site:
        assert asked_from(site, page, "target", KEY) == ["TypeError", "TypeError", "TypeError", ""]
        page.driver.switch_to.frame("f")
        assert page.driver.find_elements(By.ID, "nav") == []
        page.driver.switch_to.default_content()
    assert memories(server, "target") == ["Likes tea"]


def test_a_server_without_a_key_opens_at_once_and_yet_for_no_other_site(
    browser: Chrome, tmp_path: Path
) -> None:
    """Brief of the inspector: cross-site pages cannot use it; `serve --no-key` takes the key away, not the guard."""
    with served(tmp_path / "memory.db", "--no-key") as server:
        remember(server, "target", "Likes tea")
        page = Inspector(browser, server.url)
        browser.get(server.url + "/")
        page.heading("Callers")
        assert not browser.find_element(By.ID, "lock").is_displayed()
        with another_site(server.url) as site:
            answers = asked_from(site, page, "target", "")
        assert answers[:2] == ["TypeError", "TypeError"]
        assert memories(server, "target") == ["Likes tea"]
        browser.get("about:blank")


def asked_from(site: str, page: Inspector, tag: str, key: str) -> list[str]:
    """What a page over there gets when it tries in several ways to have a caller erased."""
    page.driver.get(site + "/")
    answers: list[str] = page.driver.execute_async_script(
        """const [url, tag, key, done] = arguments;
        const body = JSON.stringify({ tag });
        const ways = [
          { headers: { "Authorization": `Bearer ${key}`, "Content-Type": "application/json" } },
          { headers: { "Authorization": `Bearer ${key}` } },
          { headers: { "Content-Type": "text/plain" }, credentials: "include" },
          { mode: "no-cors", credentials: "include" },
        ];
        Promise.all(ways.map((way) => fetch(url, { method: "POST", body, ...way })
          .then((answer) => answer.text()).catch((error) => error.name))).then(done);""",
        page.url + "/inspector/api/erase-caller",
        tag,
        key,
    )
    return answers


# -- for everybody


def test_it_is_used_with_the_keyboard_alone(locked: Inspector) -> None:
    """Brief of the inspector: keyboard usable."""

    def press(*keys: str) -> None:
        ActionChains(locked.driver).send_keys(*keys).perform()

    def tab_to(name: str) -> None:
        for _ in range(25):
            press(Keys.TAB)
            focused = locked.focused()
            if name in (focused.text, focused.accessible_name):
                outline = focused.value_of_css_property("outline-style")
                assert outline != "none", f"the focus on {name} cannot be seen"
                return
        raise AssertionError(f"never reached {name}")

    locked.driver.get(locked.url + "/")
    locked.heading("Enter the key")
    assert locked.focused().accessible_name == "Key"
    press(KEY, Keys.ENTER)
    locked.heading("Callers")
    assert locked.focused().tag_name == "h1"
    tab_to(BOGDAN)
    press(Keys.ENTER)
    locked.heading(BOGDAN)
    assert locked.focused().text == BOGDAN
    tab_to("Calls")
    press(Keys.ENTER)
    locked.until("//caption")
    locked.driver.execute_script("document.activeElement.blur()")
    locked.driver.refresh()
    locked.until("//caption")
    locked.driver.execute_script("document.activeElement.blur(); getSelection().collapse(document.body, 0)")
    tab_to("Skip to content")
    press(Keys.ENTER)
    assert locked.focused().get_attribute("id") == "main"
    assert locked.driver.current_url.endswith("/calls"), "the view was left"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_keeps_the_rules_for_accessible_pages(page: Inspector, scheme: str) -> None:
    """Brief of the inspector: screen-reader usable; axe-core's rules, WCAG 2.1 A and AA, contrast included."""
    colours = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", colours)
    try:
        for view in VIEWS:
            show(page, view)
            faults = accessibility_faults(page)
            assert faults == [], f"{view}: {json.dumps(faults, indent=1)}"
        page.go("caller", INES)
        page.button("Erase this caller…").click()
        page.until("//dialog[@open]")
        assert accessibility_faults(page) == []
        page.button("Cancel").click()
        page.button("Lock").click()
        page.heading("Enter the key")
        assert accessibility_faults(page) == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def accessibility_faults(page: Inspector) -> list[dict[str, object]]:
    found = Axe().run(page.driver)["violations"]
    return [{"rule": one["id"], "where": [node["html"] for node in one["nodes"]][:3]} for one in found]


def test_views_have_one_title_in_order_and_name_themselves(page: Inspector) -> None:
    """Brief of the inspector: landmarks, tables with captions, labels."""
    for view, (_, _, title) in VIEWS.items():
        show(page, view)
        assert page.driver.title == f"{title} – Memory inspector"
        levels = [
            int(one.tag_name[1]) for one in page.driver.find_elements(By.CSS_SELECTOR, "main :is(h1, h2, h3)")
        ]
        assert levels[0] == 1, view
        assert levels.count(1) == 1, view
        assert all(after - before <= 1 for before, after in pairwise(levels)), view
        for table in page.driver.find_elements(By.TAG_NAME, "table"):
            assert table.find_element(By.TAG_NAME, "caption").text


def test_no_view_is_wider_than_a_telephone(page: Inspector) -> None:
    """Brief of the inspector: responsive."""
    narrow = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    try:
        for view in VIEWS:
            show(page, view)
            wide = page.driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 360, f"{view} is {wide} wide"
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
