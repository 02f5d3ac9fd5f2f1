"""Drives the built-in page in headless Chromium: chats, stops an answer, and checks what a model cannot do to the page.

usage: check_page.py URL SCREENSHOT.png      (chromium and chromedriver on the PATH, selenium from PyPI)
"""

import sys
import time

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

URL, SCREENSHOT = sys.argv[1:]
options = webdriver.ChromeOptions()
for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=900,760"):
    options.add_argument(argument)
options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
browser = webdriver.Chrome(options=options)
wait = WebDriverWait(browser, 60)


def say(text):
    browser.find_element(By.ID, "prompt").send_keys(text, Keys.ENTER)


def is_idle(_):
    return browser.find_element(By.ID, "send").is_enabled()


def last():
    return browser.find_elements(By.CSS_SELECTOR, "#talk li")[-1].text


try:
    browser.get(URL)
    wait.until(lambda _: browser.find_element(By.ID, "model").text == "tiny-lfm3")
    say("What is the capital of France?")
    wait.until(lambda _: "Paris" in browser.find_element(By.ID, "talk").text)
    wait.until(is_idle)
    assert last() == "The capital of France is Paris.", last()
    assert "tok/s" in browser.find_element(By.ID, "figures").text
    # What the model repeats is text, even where it looks like markup.
    say("Repeat after me: <b>bold</b> <img src=x onerror=alert(1)>")
    time.sleep(0.2)
    wait.until(is_idle)
    assert not browser.find_elements(By.CSS_SELECTOR, "#talk b, #talk img")
    say("Count from 1 to 60.")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    wait.until(is_idle)
    browser.find_element(By.TAG_NAME, "summary").click()
    browser.find_element(By.ID, "temperature").send_keys("9")
    say("Hi")
    wait.until(lambda _: "temperature" in last())
    browser.save_screenshot(SCREENSHOT)
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE" and "400" not in entry["message"]]
    assert not severe, severe
    print("the page behaves")
finally:
    browser.quit()
