"""What a person does in the inspector, by names and roles as a screen reader has them."""

from __future__ import annotations

from urllib.parse import quote

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from .served import KEY

__all__ = ["Inspector"]

_PATIENCE = 30
"""Seconds, for machines that do much else. A test waits as long as the view takes."""


class Inspector:
    """One tab."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver = driver
        self.url = url
        self._wait = WebDriverWait(driver, _PATIENCE, poll_frequency=0.05)

    def unlock(self, key: str = KEY) -> None:
        """From a fresh tab to the list of callers."""
        self.driver.get(self.url + "/")
        self.heading("Enter the key")
        self.enter_key(key)
        self.heading("Callers")

    def enter_key(self, key: str) -> None:
        field = self.labelled("Key")
        field.clear()
        field.send_keys(key)
        self.button("Open the inspector").click()

    def go(self, *segments: str, query: str = "") -> None:
        """To a view, by its address."""
        path = "/".join(quote(segment, safe="") for segment in segments)
        self.driver.execute_script("location.hash = arguments[0]", f"#/{path}{query}")

    def heading(self, text: str) -> WebElement:
        """Wait for the view with this title."""
        return self.until(f"//h1[normalize-space()={_literal(text)}]")

    def until(self, xpath: str, *, shown: bool = True) -> WebElement:
        """Wait for an element that is shown, or else is there at all."""

        def found(driver: Chrome) -> WebElement | None:
            elements = driver.find_elements(By.XPATH, xpath)
            try:
                return next((one for one in elements if one.is_displayed() or not shown), None)
            except StaleElementReferenceException:
                return None  # another view has taken its place meanwhile

        return self._wait.until(found, f"nothing there: {xpath}")

    def until_text(self, text: str) -> WebElement:
        return self.until(f"//main//*[not(*) and contains(normalize-space(), {_literal(text)})]")

    def gone(self, text: str) -> None:
        """Wait until no element says this any more."""
        self._wait.until(
            lambda driver: text not in driver.find_element(By.TAG_NAME, "main").text, f"still there: {text}"
        )

    def button(self, name: str) -> WebElement:
        """By its accessible name."""
        xpath = f"//button[@aria-label={_literal(name)} or (not(@aria-label) and normalize-space()={_literal(name)})]"
        return self.until(xpath)

    def link(self, text: str) -> WebElement:
        return self.until(f"//a[normalize-space()={_literal(text)}]")

    def labelled(self, label: str) -> WebElement:
        """The control of a label."""
        named = self.until(f"//label[normalize-space()={_literal(label)}]").get_attribute("for")
        return self.driver.find_element(By.ID, named or "")

    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "main").text

    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def console(self) -> list[str]:
        """What the browser complained about since it was asked last."""
        entries: list[dict[str, str]] = self.driver.get_log("browser")
        return [entry["message"] for entry in entries]


def _literal(text: str) -> str:
    """A string in XPath, which has no escapes."""
    if '"' not in text:
        return f'"{text}"'
    parts = ", '\"', ".join(f'"{part}"' for part in text.split('"'))
    return f"concat({parts})"
