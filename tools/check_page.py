"""Drives the built-in page in headless Chromium: chats, stops an answer, and checks what a model cannot do to the page.

usage: check_page.py URL DIRECTORY      (chromium and chromedriver on the PATH, selenium from PyPI)

DIRECTORY gets screenshots to look at: light and dark, wide and narrow.
"""

import pathlib
import shutil
import sys

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

URL, DIRECTORY = sys.argv[1], pathlib.Path(sys.argv[2])
DIRECTORY.mkdir(parents=True, exist_ok=True)
options = webdriver.ChromeOptions()
options.binary_location = shutil.which("chromium")
for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"):
    options.add_argument(argument)
options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
# The page may replace an element between finding it and asking for it.
wait = WebDriverWait(browser, 60, poll_frequency=0.05, ignored_exceptions=[StaleElementReferenceException])


def by(name):
    return browser.find_element(By.ID, name)


def say(text):
    by("prompt").send_keys(text, Keys.ENTER)


def is_idle(_):
    return by("stop").get_attribute("hidden") is not None


def last():
    """The newest message, found and read in one step: the page replaces it while it is written."""
    return browser.execute_script("return [...document.querySelectorAll('#talk li')].at(-1)?.innerText ?? ''")


def look(name, width, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 760, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), f"{name}: wider than the window"
    browser.save_screenshot(str(DIRECTORY / f"{name}.png"))


def chat():
    wait.until(lambda _: by("model").text == "tiny-lfm3")
    say("What is the capital of France?")
    wait.until(lambda _: is_idle(_) and "Paris" in by("talk").text)
    assert last() == "The capital of France is Paris.", last()
    assert "tok/s" in by("figures").text and "of 2048" in by("figures").text, by("figures").text
    assert browser.switch_to.active_element == by("prompt"), "the next message can be typed at once"


def watts():
    """Shown where the server has a meter; told here as such a server tells them."""
    assert " W" not in by("figures").text
    browser.execute_script("show(0, 0, null, { predicted_per_second: 50, cache_n: 3, energy: { watts: 4.2 } })")
    assert by("figures").text == "50.0 tok/s · 4.2 W · 3 cached", by("figures").text


def markup():
    """What the model repeats is text, even where it looks like markup."""
    say("Repeat after me: <b>bold</b> <img src=x onerror=alert(1)>")
    wait.until(lambda _: is_idle(_) and len(browser.find_elements(By.CSS_SELECTOR, "#talk li")) == 4)
    assert not browser.find_elements(By.CSS_SELECTOR, "#talk b, #talk img")


def stop():
    # Something long: without the tokens that end an answer only the context does. Even so it may be over before the key.
    browser.execute_script("const ask = settings; settings = () => ({ ...ask(), logit_bias: { 7: -100, 2: -100 } })")
    assert any(is_stopped() for _ in range(5)), "no answer was stopped"
    browser.refresh()


def is_stopped():
    by("clear").click()
    say("Count from 1 to 60.")
    wait.until(lambda _: len(last()) > 3)
    by("prompt").send_keys(Keys.ESCAPE)
    wait.until(is_idle)
    return bool(browser.find_elements(By.CSS_SELECTOR, "#talk .stopped"))


def settings():
    browser.find_element(By.TAG_NAME, "summary").click()
    by("temperature").send_keys("9")
    say("Hi")
    wait.until(lambda _: "temperature" in last())
    by("temperature").clear()


try:
    browser.get(URL)
    for check in (stop, chat, watts, markup):
        check()
    for scheme in ("light", "dark"):
        look(f"wide-{scheme}", 1000, scheme)
        look(f"narrow-{scheme}", 380, scheme)
    settings()
    look("settings-narrow-dark", 380, "dark")
    look("settings-wide-light", 1000, "light")
    by("clear").click()
    assert not by("talk").text
    look("empty-wide-light", 1000, "light")
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE" and " 400 " not in entry["message"]]
    assert not severe, severe
    print("the page behaves")
finally:
    browser.quit()
