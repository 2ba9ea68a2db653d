#!/usr/bin/env python3
"""page_test.py PLAYED_PAGE HETERO_RUNTIME FOLDER [unittest's arguments]: opens the live page of played jobs of 1, 20 and
500 workers, and of a real local job, in a headless Chromium; compares what a person reads, goes through it by keyboard
alone, and leaves pictures in FOLDER. Ends with 77 where there is no Chromium."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from browser import Browser, find_program

JOB = '''
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: small}
spec:
  dataset:
    uri: "synthetic://"
    samples: 4096
    classes: 4
    image: {height: 16, width: 16, channels: 3}
  pipeline:
  - {op: Delay, milliseconds: 4}
  - {op: HorizontalFlip}
  - {op: Normalize}
  training:
    model: {name: mlp}
    batchSizePerWorker: 32
    epochs: 20
    optimizer: {name: SGD, learningRate: 0.05, momentum: 0.9}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 2}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}
'''


def state_is(state):
    return f'document.querySelector("#state").innerText === "{state}"'


def count_drawn():
    return 'document.querySelectorAll("#worker-table tbody tr:not(.spacer)").length'


class Played:
    """A played job and its page."""

    def __init__(self, workers, port=0):
        self.process = subprocess.Popen([PLAYED, str(workers), str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def end_job(self):
        self.process.stdin.write('end\n')
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class PlayedJobs(unittest.TestCase):

    def open(self, browser, job):
        browser.open(job.address)
        browser.wait('document.querySelector("#state")')
        browser.wait(state_is('Running'))
        browser.wait(f'{count_drawn()} > 0')

    def save(self, browser, name):
        browser.picture(os.path.join(FOLDER, name + '.png'))

    def check_figures(self, browser, workers):
        self.assertEqual(browser.text('h1'), f'played-{workers}')
        self.assertEqual(browser.text('#link'), 'Live')
        findings = browser.text('#finding-list')
        self.assertIn('of training so far', findings)
        self.assertRegex(findings, r'Field: spec\.\w+')
        self.assertRegex(browser.text('#done-text'), r'step \d+ of 6,000')
        self.assertRegex(browser.text('#rate'), r'^6\d\d$')
        self.assertEqual(browser.text('#wait'), '38 %')
        self.assertRegex(browser.text('#cost'), r'^\$\d')
        self.assertIn('the batch was in work', browser.text('#wait-bar'))
        self.assertIn('forward', browser.text('#phase-bar'))
        operators = browser.text('#operator-table')
        self.assertRegex(operators, r'GaussianBlur\s+CPU workers\s+9 ms \(most\)')
        self.assertRegex(operators, r'Normalize\s+trainers')
        self.assertIn('is made', browser.text('#waterfall'))
        self.assertIn('Median of', browser.text('#waterfall'))
        self.assertRegex(browser.text('#waterfall'), r'Latest, step \d+ by cpu-1')
        browser.wait('/core/.test(document.querySelector("#core-map .readout").innerText) || '
                     '/Busiest/.test(document.querySelector("#core-map .readout").innerText)')
        self.assertIn('samples so far <script>', browser.text('#log'))
        self.assertNotEqual(browser.run('document.title'), 'taken over')

    def test_one_worker(self):
        with Played(1) as job, Browser(CHROMIUM) as browser:
            self.open(browser, job)
            self.check_figures(browser, 1)
            self.assertEqual(browser.text('#worker-count'), '2 processes')
            self.assertEqual(browser.run(count_drawn()), 2)
            step = browser.text('#done-text')
            browser.wait(f'document.querySelector("#done-text").innerText !== "{step}"')
            self.save(browser, 'one-worker')
            self.assertEqual(browser.complaints, [])

    def test_twenty_workers(self):
        with Played(20) as job, Browser(CHROMIUM) as browser:
            self.open(browser, job)
            self.check_figures(browser, 20)
            self.assertEqual(browser.text('#worker-count'), '22 processes')
            events = browser.text('#event-list')
            self.assertIn('Fault, cpu-2', events)
            self.assertIn('killed by SIGKILL', events)
            # The slowest is shown first.
            browser.wait('document.querySelector("#member-choice").value === "cpu-1"')
            self.assertIn('SlowWorker', browser.text('#finding-list'))
            self.save(browser, 'twenty-workers')
            browser.run('document.querySelector("#heat-kind").value = "gpus"; '
                        'document.querySelector("#heat-kind").dispatchEvent(new Event("change"))')
            self.assertIn('gpu-0', browser.text('#overview-map .readout'))
            self.assertEqual(browser.complaints, [])

    def test_five_hundred_workers(self):
        with Played(500) as job, Browser(CHROMIUM) as browser:
            self.open(browser, job)
            self.check_figures(browser, 500)
            self.assertEqual(browser.text('#worker-count'), '628 processes')
            self.assertLess(browser.run(count_drawn()), 40, 'only what is seen is drawn')
            scroll = 'document.querySelector("#worker-table .scroll")'
            self.assertGreater(browser.run(f'{scroll}.scrollHeight'), 628 * 27, 'but all have their room')
            browser.run(f'{scroll}.scrollTop = 300 * 28')
            browser.wait('/cpu-30\\d/.test(document.querySelector("#worker-table tbody").innerText)')
            self.assertLess(browser.run('document.querySelector("#overview-map canvas").height'), 100)
            self.save(browser, 'five-hundred-workers')
            self.assertEqual(browser.complaints, [])

    def test_keyboard_alone(self):
        focused = 'document.activeElement.innerText || document.activeElement.id'
        with Played(20) as job, Browser(CHROMIUM) as browser:
            self.open(browser, job)
            for _ in range(40):
                browser.press('Tab')
                if browser.run('document.activeElement.id') == 'filter':
                    break
            self.assertEqual(browser.run('document.activeElement.id'), 'filter')
            browser.write('cpu-1')  # by name eleven, and four on the machine node-cpu-1
            browser.wait('document.querySelector("#worker-count").innerText === "15 of 22 processes"')
            browser.press('Tab')  # the table's area, then the head of its first column
            for _ in range(3):
                if 'Process' in browser.run(focused):
                    break
                browser.press('Tab')
            first = 'document.querySelector("#worker-table tbody tr:not(.spacer)").dataset.name'
            self.assertEqual(browser.run(first), 'cpu-1')
            browser.press('Enter')  # turns the order round
            browser.wait(f'{first} === "cpu-19"')
            self.assertEqual(browser.run('document.querySelector("#worker-table th").getAttribute("aria-sort")'),
                             'descending')
            for _ in range(12):
                browser.press('Tab')
                if browser.run(focused) == 'cpu-19':
                    break
            browser.press('ArrowDown')
            browser.press('ArrowDown')
            self.assertEqual(browser.run(focused), 'cpu-17')
            browser.press('Enter')
            browser.wait('document.querySelector("#member-choice").value === "cpu-17"')
            self.assertEqual(browser.run('location.hash'), '#cpu-17')
            browser.run('document.querySelector("#overview-map canvas").focus()')
            browser.press('ArrowDown')
            browser.press('ArrowLeft')
            self.assertRegex(browser.text('#overview-map .readout'), r'^cpu-18 at \d+:\d\d: \d+(\.\d+)? % busy$')
            browser.press('Enter')
            browser.wait('document.querySelector("#member-choice").value === "cpu-18"')
            browser.run('document.querySelector("#rate-chart svg").focus()')
            browser.press('ArrowLeft')
            self.assertRegex(browser.text('#rate-chart .readout'), r'^\d+:\d\d: 6\d\d$')
            self.assertEqual(browser.complaints, [])

    def test_everything_has_a_name(self):
        nameless = ('[...document.querySelectorAll("input, select, button, svg[tabindex], canvas[tabindex], progress, '
                    '[role=region]")].filter((e) => e.checkVisibility() && '
                    '!(e.getAttribute("aria-label") || e.labels?.length || e.innerText?.trim()))'
                    '.map((e) => e.outerHTML.slice(0, 80))')
        with Played(20) as job, Browser(CHROMIUM) as browser:
            self.open(browser, job)
            browser.wait('document.querySelector("#core-map canvas").getAttribute("aria-label")')
            self.assertEqual(browser.run(nameless), [])

    def test_narrow_dark_and_without_motion(self):
        wishes = [('prefers-color-scheme', 'dark'), ('prefers-reduced-motion', 'reduce')]
        with Played(20) as job, Browser(CHROMIUM, width=420, height=900, features=wishes) as browser:
            self.open(browser, job)
            self.assertLessEqual(browser.run('document.documentElement.scrollWidth'), 420, 'nothing sticks out')
            self.assertEqual(browser.run('getComputedStyle(document.body).backgroundColor'), 'rgb(15, 18, 24)')
            self.save(browser, 'narrow-dark')
            self.assertEqual(browser.complaints, [])

    def test_the_end_of_the_job(self):
        with Played(1) as job, Browser(CHROMIUM) as browser:
            self.open(browser, job)
            job.end_job()
            browser.wait(state_is('Succeeded'))
            self.assertEqual(browser.text('#link'), 'The job has ended; this is its last state')
            self.assertEqual(browser.text('#eta'), 'none')
            # Whoever comes now sees the same.
            browser.open('about:blank')
            browser.open(job.address)
            browser.wait('document.querySelector("#state")')
            browser.wait(state_is('Succeeded'))
            self.assertEqual(browser.complaints, [])

    def test_a_job_that_is_lost_and_comes_back(self):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        job = Played(1, port)
        with Browser(CHROMIUM) as browser:
            self.open(browser, job)
            job.kill()
            browser.wait('/trying again/.test(document.querySelector("#link").innerText)')
            self.assertTrue(browser.run('document.querySelector("#link").classList.contains("lost")'))
            with Played(1, port):
                browser.wait('document.querySelector("#link").innerText === "Live"')

    def test_more_viewers_than_there_is_room_for(self):
        with Played(1) as job, Browser(CHROMIUM) as browser:
            events = job.address + '/events'
            viewers = [urllib.request.urlopen(events) for _ in range(32)]
            browser.open(job.address)
            browser.wait('document.querySelector("#link") && '
                         '/32 pages look at this already/.test(document.querySelector("#link").innerText)')
            for viewer in viewers:
                viewer.close()
            browser.wait(state_is('Running'))

    def test_a_page_of_another_name_reads_nothing(self):
        with Played(1) as job:
            request = urllib.request.Request(job.address, headers={'Host': 'rebound.example.com'})
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            self.assertEqual(refused.exception.code, 403)
            refused.exception.close()


class LocalJob(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(self.folder.name, 'job.yaml'), 'w') as file:
            file.write(JOB)

    def tearDown(self):
        self.folder.cleanup()

    def start(self, *more):
        trainer = os.path.join(os.path.dirname(RUNTIME), 'hetero-trainer')
        only = [] if os.path.exists(trainer) else ['--input-only']
        process = subprocess.Popen([RUNTIME, 'local', 'job.yaml', '--page', '--output', 'out', *only, *more],
                                   cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in process.stdout:
            if found := re.match(r'page: (http://127\.0\.0\.1:\d+/live)$', line.strip()):
                return process, found.group(1)
        raise AssertionError('the page was not named')

    def test_its_page_from_the_beginning_to_the_end(self):
        process, address = self.start()
        try:
            with Browser(CHROMIUM) as browser:
                browser.open(address)  # at once: before there is a head, the page waits
                browser.wait('document.querySelector("#state")')
                browser.wait(state_is('Running'), 120)
                browser.wait('/^step \\d+ of/.test(document.querySelector("#done-text").innerText)', 60)
                browser.wait('/cpu-0/.test(document.querySelector("#worker-table tbody").innerText)')
                browser.wait('/core|Busiest/.test(document.querySelector("#overview-map .readout").innerText) || '
                             '/busy/.test(document.querySelector("#overview-map .readout").innerText)')
                browser.wait('/Delay/.test(document.querySelector("#operator-table").innerText)')
                browser.wait('/info/.test(document.querySelector("#log").innerText)')
                time.sleep(5)  # for a picture with a curve: nothing is compared after it
                browser.picture(os.path.join(FOLDER, 'local-job.png'))
                self.assertEqual(browser.complaints, [])
                process.send_signal(signal.SIGINT)
                browser.wait(state_is('Stopped'), 60)
                self.assertIn('has ended', browser.text('#link'))
        finally:
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, rest)
        with self.assertRaises(OSError):
            urllib.request.urlopen(address, timeout=5)

    def test_an_address_that_is_taken_starts_nothing(self):
        with socket.socket() as taken:
            taken.bind(('127.0.0.1', 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = subprocess.run([RUNTIME, 'local', 'job.yaml', f'--page=127.0.0.1:{port}', '--output', 'out',
                                     '--input-only'], cwd=self.folder.name, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(f'127.0.0.1 port {port}', result.stderr)


if __name__ == '__main__':
    PLAYED, RUNTIME, FOLDER = sys.argv[1:4]
    CHROMIUM = find_program()
    if CHROMIUM is None:
        print('page_test: NOT RUN: this machine has no Chromium (apt-get install chromium)', file=sys.stderr)
        sys.exit(1 if os.environ.get('HETERO_REQUIRE_BROWSER') else 77)
    os.makedirs(FOLDER, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
