"""A headless Chromium that is told what to do over a pipe, by the DevTools protocol
(https://chromedevtools.github.io/devtools-protocol/), without a library of it."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome')
KEYS = {'Enter': 13, 'Tab': 9, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40, 'Home': 36, 'End': 35}


def find_program():
    """None: this machine has no Chromium."""
    return next((found for found in map(shutil.which, PROGRAMS) if found), None)


class Browser:
    """One page. Whatever it writes to its console, and what it could not load, is in `complaints`."""

    def __init__(self, program, width=1280, height=900, features=()):
        self.profile = tempfile.mkdtemp(prefix='hetero-chromium-')
        self.complaints = []
        self._count = 0
        self._read = b''
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        # The protocol's descriptors are 3 and 4; both may be in each other's place already.
        def move():
            first, second = os.dup2(to_browser, 30), os.dup2(from_browser, 31)
            os.dup2(first, 3)
            os.dup2(second, 4)

        arguments = [program, '--headless=new', '--remote-debugging-pipe', '--no-first-run', '--disable-gpu',
                     '--disable-dev-shm-usage', '--no-default-browser-check', '--disable-extensions',
                     '--disable-background-networking', '--disable-component-update', '--disable-sync',
                     '--password-store=basic', '--no-proxy-server', f'--user-data-dir={self.profile}',
                     f'--window-size={width},{height}', 'about:blank']
        if os.geteuid() == 0:  # as in a container: its sandbox wants another user
            arguments.insert(1, '--no-sandbox')
        self._process = subprocess.Popen(arguments, preexec_fn=move, close_fds=False, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        target = self._call('Target.createTarget', {'url': 'about:blank'}, session=None)['targetId']
        self._session = None
        self._session = self._call('Target.attachToTarget', {'targetId': target, 'flatten': True},
                                   session=None)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self._call(f'{domain}.enable')
        self._call('Emulation.setEmulatedMedia', {'features': [{'name': name, 'value': value}
                                                               for name, value in features]})
        self.resize(width, height)

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def resize(self, width, height):
        self._call('Emulation.setDeviceMetricsOverride',
                   {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': False})

    def open(self, address):
        self._call('Page.navigate', {'url': address})

    def run(self, script):
        """The value of an expression of JavaScript; a promise is waited for."""
        answer = self._call('Runtime.evaluate', {'expression': script, 'returnByValue': True, 'awaitPromise': True})
        if 'exceptionDetails' in answer:
            raise AssertionError(f'{script}: {answer["exceptionDetails"]}')
        return answer['result'].get('value')

    def text(self, selector):
        """What a person reads there; None: there is no such element."""
        return self.run(f'(document.querySelector({json.dumps(selector)}) || {{}}).innerText')

    def wait(self, script, seconds=120):
        """Until the expression is true. Fails after the time."""
        deadline = time.monotonic() + seconds
        while not self.run(f'!!({script})'):
            if time.monotonic() > deadline:
                raise AssertionError(f'not within {seconds} s: {script}; {self.complaints}')
            self._take(0.1)

    def press(self, key):
        for kind in ('keyDown', 'keyUp'):
            event = {'type': kind, 'key': key, 'code': key, 'windowsVirtualKeyCode': KEYS.get(key, 0)}
            if kind == 'keyDown' and key == 'Enter':
                event['text'] = '\r'
            self._call('Input.dispatchKeyEvent', event)

    def write(self, text):
        self._call('Input.insertText', {'text': text})

    def picture(self, file, whole=True):
        data = self._call('Page.captureScreenshot', {'format': 'png', 'captureBeyondViewport': whole})['data'] \
            if not whole else self._whole_picture()
        with open(file, 'wb') as out:
            out.write(base64.b64decode(data))

    def _whole_picture(self):
        size = self._call('Page.getLayoutMetrics')['cssContentSize']
        clip = {'x': 0, 'y': 0, 'width': size['width'], 'height': size['height'], 'scale': 1}
        return self._call('Page.captureScreenshot',
                          {'format': 'png', 'captureBeyondViewport': True, 'clip': clip})['data']

    def _call(self, method, parameters=None, session='own'):
        self._count += 1
        message = {'id': self._count, 'method': method, 'params': parameters or {}}
        if session == 'own' and self._session:
            message['sessionId'] = self._session
        os.write(self._out, json.dumps(message).encode() + b'\0')
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for answer in self._take(1):
                if answer.get('id') != self._count:
                    continue
                if 'error' in answer:
                    raise AssertionError(f'{method}: {answer["error"]}')
                return answer['result']
        raise AssertionError(f'{method}: no answer')

    def _take(self, seconds):
        """The messages that have arrived, after `seconds` at most."""
        if select.select([self._in], [], [], seconds)[0]:
            data = os.read(self._in, 1 << 20)
            if not data:
                raise AssertionError('Chromium has ended')
            self._read += data
        *whole, self._read = self._read.split(b'\0')
        messages = [json.loads(message) for message in whole]
        for message in messages:
            self._listen(message.get('method'), message.get('params', {}))
        return messages

    def _listen(self, method, event):
        if method == 'Runtime.consoleAPICalled':
            self.complaints.append(' '.join(str(argument.get('value')) for argument in event['args']))
        elif method == 'Runtime.exceptionThrown':
            details = event['exceptionDetails']
            self.complaints.append(details.get('exception', {}).get('description', details['text']))
        elif method == 'Log.entryAdded':
            entry = event['entry']
            self.complaints.append(f'{entry["text"]} {entry.get("url", "")}')
