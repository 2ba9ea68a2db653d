#!/usr/bin/env python3
"""jobs_page_test.py PLAYED_JOBS [FOLDER]: the operator's page of all jobs, of played ones (played_jobs.cpp), in a headless
Chromium: what a person reads there, by the keyboard too. FOLDER gets pictures. Exit code 77: there is no Chromium."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, find_program

PROGRAM = sys.argv[1]
PICTURES = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix='hetero-jobs-page-'))
ROWS = "[...document.querySelectorAll('#table tbody tr:not(.spacer):not(.more)')]"
NAMES = ROWS + ".map((row) => row.children[1].innerText.trim())"
HOSTILE = 'x"><img src=x onerror=alert(1)></script>&lt;b&gt;'
MOST_ROWS = 60  # in the document, however many jobs there are


class PlayedJobs:
    def __init__(self, count, port=0):
        self.process = subprocess.Popen([PROGRAM, str(count), str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.address = self.process.stdout.readline().strip()

    def tell(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class JobsPage(unittest.TestCase):
    @contextlib.contextmanager
    def opened(self, count, **options):
        jobs = PlayedJobs(count)
        try:
            with Browser(find_program(), **options) as browser:
                browser.open(jobs.address)
                browser.wait("document.querySelector('#link')?.innerText === 'Live'")
                browser.wait(f'{ROWS}.length === {count} || {ROWS}.length > 10')
                yield jobs, browser
                self.assertEqual(browser.complaints, [])
        finally:
            jobs.close()

    def cells(self, browser, name):
        return browser.run(f"{ROWS}.filter((row) => row.children[1].innerText.trim() === {name!r})"
                           ".map((row) => [...row.children].map((cell) => cell.innerText.trim()))[0]")

    def test_three_jobs(self):
        with self.opened(3) as (jobs, browser):
            self.assertEqual(browser.run(NAMES), ['vit-large-sweep-0000', 'vit-large-sweep-0002', 'vit-large-sweep-0001'],
                             'failed, starved, waiting')
            starved = self.cells(browser, 'vit-large-sweep-0002')
            self.assertEqual(starved[0], 'team-2')
            self.assertEqual(starved[2:8], ['Running, starved', '–', '10 % of 1,000', '802', '38 % !', '$14.50'])
            self.assertTrue(starved[9].startswith('InputBound: Ranks waited'), starved)
            queued = self.cells(browser, 'vit-large-sweep-0001')
            self.assertEqual(queued[2:8], ['Queued', 'team-queue: Pending', '–', '–', '–', '$13.50'])
            self.assertTrue(queued[9].startswith("Pending: couldn't assign flavors"), queued)
            self.assertEqual(browser.text('#dollars'), '$40.50')
            self.assertEqual(browser.text('#waited'), '$6.75')
            self.assertEqual(browser.text('#kinds').split('\n')[:3], ['1 failed', '0 stalled', '1 starved'])
            self.assertEqual(browser.run('document.title'), 'All jobs: 2 need attention')
            browser.picture(PICTURES / 'three.png')

            jobs.tell('step 2')
            browser.wait(f"{ROWS}[1].innerText.includes('50 % of 1,000')")
            jobs.tell('fail 1')
            browser.wait(f"{NAMES}.indexOf('vit-large-sweep-0001') === 0")
            self.assertEqual(self.cells(browser, 'vit-large-sweep-0001')[2], 'Failed')
            jobs.tell('remove 0')
            browser.wait(f"!{NAMES}.includes('vit-large-sweep-0000')")

    def test_by_the_keyboard(self):
        with self.opened(40, width=1500) as (jobs, browser):
            for _ in range(40):
                browser.press('Tab')
                if browser.run("document.activeElement.closest('tbody') !== null"):
                    break
            focused = "document.activeElement.innerText.trim()"
            names = browser.run(NAMES)
            self.assertEqual(browser.run(focused), names[0])
            for _ in range(4):
                browser.press('ArrowDown')
            self.assertEqual(browser.run(focused), names[4])
            self.assertEqual(names[4], 'vit-large-sweep-0032', 'four have failed; what waits most comes next')
            browser.press('Enter')
            browser.wait("Boolean(document.querySelector('.detail'))")
            detail = browser.text('.detail')
            self.assertIn('InputBound: Ranks waited for data 38 %', detail)
            self.assertEqual(browser.text('.remedy'), 'Add two replicas to role cpu.')
            self.assertIn('Field: spec.roles[1].replicas', detail)
            self.assertIn('kubectl -n team-4 port-forward pod/vit-large-sweep-0032-boss-0 7072', detail)
            self.assertEqual(browser.run("document.activeElement.getAttribute('aria-expanded')"), 'true')
            browser.picture(PICTURES / 'unfolded.png')
            jobs.tell('step 32')  # the focus stays while the row is filled again
            browser.wait(f"{ROWS}[4].innerText.includes('50 % of 1,000')")
            self.assertEqual(browser.run(focused), names[4])
            browser.press('End')
            browser.wait(f"{focused} === 'vit-large-sweep-0004'")
            browser.press('Home')
            browser.wait(f'{focused} === {names[0]!r}')
            browser.run("document.querySelector('#filter').focus()")
            browser.write('team-4 flagged')
            browser.wait(f"{ROWS}.length === 1 && {NAMES}[0] !== ''")
            self.assertRegex(browser.text('#shown'), '1 of 40 jobs')

    def test_a_thousand_jobs(self):
        with self.opened(1000) as (jobs, browser):
            self.assertEqual(browser.text('#shown'), '1,000 jobs')
            self.assertEqual(browser.text('#count'), '1,000')
            in_document = f'{ROWS}.length'
            self.assertLess(browser.run(in_document), MOST_ROWS)
            self.assertEqual(set(browser.run(f'{ROWS}.map((row) => row.offsetHeight)')), {28}, 'what scrolling counts on')
            browser.picture(PICTURES / 'thousand.png')
            scroll = "document.querySelector('#table .scroll')"
            for share in (0.3, 0.77, 1):
                browser.run(f'{scroll}.scrollTop = {share} * {scroll}.scrollHeight')
                # What is in the middle of the table is a job, and that one whose turn it is.
                browser.wait(f"""(() => {{
                  const box = {scroll}.getBoundingClientRect();
                  const row = document.elementFromPoint(box.left + 20, box.top + box.height / 2).closest('tr');
                  const top = {scroll}.scrollTop + box.height / 2 - 28;
                  return Math.abs(Number(row.getAttribute('aria-rowindex')) - 2 - top / 28) <= 1.5;
                }})()""")
                self.assertLess(browser.run(in_document), MOST_ROWS)
            browser.run("document.querySelector('#namespace').value = 'team-3';"
                        "document.querySelector('#namespace').dispatchEvent(new Event('change'))")
            self.assertEqual(browser.text('#shown'), '143 of 1,000 jobs')
            self.assertEqual(browser.text('#count'), '143', 'totals are those of the namespace')
            browser.run("document.querySelectorAll('#kinds button')[2].click()")
            browser.wait(f"{ROWS}.every((row) => row.children[2].innerText === 'Running, starved')")
            browser.run("document.querySelectorAll('#table th button')[7].click()")
            dollars = browser.run(f"{ROWS}.map((row) => Number(row.children[7].innerText.replace(/[$,]/g, '')))")
            self.assertEqual(dollars, sorted(dollars, reverse=True))

    def test_names_are_never_html(self):
        with self.opened(3) as (jobs, browser):
            jobs.tell('hostile')
            browser.wait(f'{ROWS}.length === 4')
            row = f"{ROWS}.find((row) => row.children[1].innerText.includes('onerror'))"
            self.assertEqual(browser.run(f'{row}.children[1].innerText.trim()'), HOSTILE)
            browser.run(f"{row}.querySelector('button').click()")
            browser.wait("Boolean(document.querySelector('.detail'))")
            self.assertIn(HOSTILE, browser.text('.detail'))
            self.assertEqual(browser.run("document.querySelectorAll('img, #table script').length"), 0)

    def test_it_finds_back_to_a_new_operator(self):
        jobs = PlayedJobs(3)
        port = int(jobs.address.rstrip('/').rsplit(':', 1)[1])
        with Browser(find_program()) as browser:
            browser.open(jobs.address)
            browser.wait(f'{ROWS}.length === 3')
            jobs.close()
            browser.wait("document.querySelector('#link').className.includes('lost')")
            self.assertIn('trying again', browser.text('#link'))
            self.assertEqual(browser.run(f'{ROWS}.length'), 3, 'what was known stays')
            jobs = PlayedJobs(5, port)
            try:
                browser.wait(f"{ROWS}.length === 5 && document.querySelector('#link').innerText === 'Live'", 60)
            finally:
                jobs.close()

    def test_in_the_dark_and_narrow(self):
        with self.opened(40, width=700, features=(('prefers-color-scheme', 'dark'),)) as (_, browser):
            self.assertLessEqual(browser.run('document.documentElement.scrollWidth'), 700, 'only the table scrolls aside')
            browser.picture(PICTURES / 'dark.png')


if __name__ == '__main__':
    if find_program() is None:
        print('NOT RUN: there is no Chromium (package chromium)', file=sys.stderr)
        sys.exit(77)
    os.makedirs(PICTURES, exist_ok=True)
    print('pictures:', PICTURES)
    unittest.main(argv=sys.argv[:1])
