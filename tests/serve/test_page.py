"""The live page in a browser: what it shows, on a wide screen and a narrow one, dark and light."""

import pytest

from serve.arrivals import arrivals
from serve.browser import CHROMIUM, Browser
from serve.running import Running

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)


@pytest.mark.parametrize("labels", [False, True])
def test_the_page_shows_how_the_model_is_doing(tmp_path, labels):
    with (
        Running(tmp_path / "service", "--target", "price", "--learner", "embedded") as running,
        Browser(tmp_path / "browser") as browser,
    ):
        browser.show(running.url, 1200)
        browser.wait_for("document.body.innerText.includes('No label has come yet')")
        told = [[kind, body] for kind, body in arrivals(60, 0, labels=labels)]
        for kind, body in told:
            assert running.post(kind, body).status_code == 200
        learned = sum(kind != "predict" for kind, _ in told)
        browser.wait_for(f"document.querySelectorAll('#rows circle').length >= {learned - 1}")
        text = browser.ask("document.body.innerText")
        assert "Predicting price: " in text
        assert all(name in text for name in ("persistence", "constant", "linear"))
        assert ("error rate" if labels else "mean squared error") in text
        assert browser.ask("document.getElementById('ask').hidden")
        colours = set()
        for dark in (False, True):
            for width in (1200, 360):
                browser.show(running.url, width, dark=dark)
                browser.wait_for("document.querySelectorAll('#rows circle').length > 10")
                assert browser.ask("document.documentElement.scrollWidth <= innerWidth")
                colours.add(browser.ask("getComputedStyle(document.body).backgroundColor"))
        assert len(colours) == 2
        assert browser.complaints == []
        assert running.stop() == 0
        browser.wait_for("document.body.innerText.includes('No answer')")


def test_a_token_is_asked_for(tmp_path):
    token = tmp_path / "token"
    token.write_text("a token of enough letters".replace(" ", "-"))
    begin = ("--target", "price", "--learner", "embedded", "--token-file", token)
    with Running(tmp_path / "service", *begin) as running, Browser(tmp_path / "browser") as browser:
        browser.show(running.url, 400)
        browser.wait_for("!document.getElementById('ask').hidden")
        browser.ask(f"document.getElementById('token').value = '{token.read_text()}'")
        browser.ask("document.querySelector('#ask button').click()")
        browser.wait_for("document.body.innerText.includes('Predicting price')")
        assert browser.ask("document.getElementById('ask').hidden")
