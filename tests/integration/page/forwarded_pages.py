#!/usr/bin/env python3
"""forwarded_pages.py NAMESPACE POD OPEN_POD SYSTEM_NAMESPACE DEPLOYMENT FOLDER: the live page of the job whose head is POD
through `kubectl port-forward`, that of OPEN_POD, which no NetworkPolicy closes, through the API server's proxy, and the page
of all jobs of the operator's DEPLOYMENT through a port-forward, each in a headless Chromium as a person on another machine
would open it. Pictures go to FOLDER. Ends with 77 where there is no Chromium."""

import contextlib
import os
import pathlib
import re
import select
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, find_program

NAME_SPACE, POD, OPEN_POD, SYSTEM, DEPLOYMENT, FOLDER = sys.argv[1:7]
PORT, JOBS_PORT = 7072, 8082


@contextlib.contextmanager
def listening(arguments, pattern):
    """kubectl with these arguments; the port of this machine on which it says that it listens."""
    process = subprocess.Popen(['kubectl', *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline, said = time.monotonic() + 60, ''
        while not (found := re.search(pattern, said)):
            if time.monotonic() > deadline or not select.select([process.stdout], [], [], 1)[0]:
                if time.monotonic() > deadline:
                    raise AssertionError(f'kubectl {arguments} said: {said}')
                continue
            line = process.stdout.readline()
            if not line:
                raise AssertionError(f'kubectl {arguments} ended: {said}')
            said += line
        yield int(found.group(1))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def check_page_of_job(browser, address):
    browser.open(address)
    browser.wait("document.querySelector('#state')?.innerText === 'Running'")
    browser.wait("document.querySelector('#link').innerText === 'Live'")
    browser.wait("/^step \\d+ of/.test(document.querySelector('#done-text').innerText)")
    step = browser.text('#done-text')
    browser.wait(f"document.querySelector('#done-text').innerText !== '{step}'", 30)
    browser.wait("/cpu-0/.test(document.querySelector('#worker-table tbody').innerText)")
    # A member's cores are fetched by a request of their own, below the page's address.
    browser.wait("/core|Busiest/.test(document.querySelector('#core-map .readout').innerText)")
    assert browser.complaints == [], browser.complaints


def main():
    program = find_program()
    if program is None:
        print('forwarded_pages: NOT RUN: this machine has no Chromium (apt-get install chromium)', file=sys.stderr)
        return 1 if os.environ.get('HETERO_REQUIRE_BROWSER') else 77
    os.makedirs(FOLDER, exist_ok=True)
    with listening(['port-forward', '-n', NAME_SPACE, f'pod/{POD}', f':{PORT}'], r'127\.0\.0\.1:(\d+) ->') as port, \
            Browser(program) as browser:
        check_page_of_job(browser, f'http://localhost:{port}/live')
        browser.picture(os.path.join(FOLDER, 'port-forward.png'))
    print('port-forward: its page is live', flush=True)
    with listening(['proxy', '--port=0'], r'127\.0\.0\.1:(\d+)') as port, Browser(program) as browser:
        check_page_of_job(browser,
                          f'http://127.0.0.1:{port}/api/v1/namespaces/{NAME_SPACE}/pods/{OPEN_POD}:{PORT}/proxy/live')
        browser.picture(os.path.join(FOLDER, 'proxy.png'))
    print("the API server's proxy: its page is live", flush=True)
    with listening(['port-forward', '-n', SYSTEM, f'deploy/{DEPLOYMENT}', f':{JOBS_PORT}'],
                   r'127\.0\.0\.1:(\d+) ->') as port, Browser(program) as browser:
        browser.open(f'http://localhost:{port}/')
        browser.wait("document.querySelector('#link')?.innerText === 'Live'")
        browser.wait(f"document.querySelector('#table tbody').innerText.includes('{NAME_SPACE}')")
        assert browser.complaints == [], browser.complaints
        browser.picture(os.path.join(FOLDER, 'all-jobs.png'))
    print('port-forward: the page of all jobs has it', flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
