"""without_secrets on small programs: what they plant is found, in each form and at its place."""

import base64
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("without_secrets")
sys.dont_write_bytecode = True  # no caches beside the scripts


def load():
    loader = importlib.machinery.SourceFileLoader("without_secrets", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("without_secrets", loader))
    loader.exec_module(module)
    return module


SEARCH = load()
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyZWFkZXIifQ.c2lnbmF0dXJlLW9mLWEtdG9rZW4_-Q"
CONSTANTS = dict(SEARCH.CONSTANT.findall(SEARCH.HEADER.read_text()))
SECRET = CONSTANTS["kSecret"]
# It prints nothing of what it plants.
PLANT = "import os,sys; f=open('planted','wb'); f.write(b'x'*1000+bytes.fromhex(sys.argv[1])+b'y'); f.close()"


class WithoutSecrets(unittest.TestCase):
    def run_program(self, *command):
        done = subprocess.run([SCRIPT, *command], capture_output=True, check=False)
        errors = re.sub("without_secrets: core files ARE NOT SEARCHED.*\n", "", done.stderr.decode())
        for folder in set(re.findall(r"secret found: (\S*/hs-[^/]+)/", errors)):
            self.addCleanup(shutil.rmtree, folder)
        return done.returncode, done.stdout.decode(errors="replace"), errors

    def run_python(self, text, *arguments):
        return self.run_program(sys.executable, "-c", text, *arguments)

    def expect_found(self, planted, form):
        code, _, errors = self.run_python(PLANT, planted.hex())
        self.assertEqual(code, 1, form)
        self.assertRegex(errors, rf"secret found: /\S+/planted, offset 10\d\d: {re.escape(form)}\n")
        self.assertNotIn(SECRET, errors)

    def test_a_program_that_leaves_none_keeps_its_code_and_output(self):
        self.assertEqual(self.run_python("print('done'); raise SystemExit(3)"), (3, "done\n", ""))
        self.assertEqual(self.run_python("import os; os.kill(os.getpid(), 9)")[0], 137)

    def test_each_secret_is_found_in_each_form(self):
        for name in SEARCH.SECRETS:
            text = CONSTANTS[name].encode()
            self.expect_found(text, name)
            self.expect_found(text.hex().encode(), f"{name} in hexadecimal digits")
            for before in ("", "k", "ke"):
                whole = base64.b64encode(before.encode() + text + b"more")
                self.expect_found(whole, f"{name} in base64")
        self.expect_found(SECRET.replace("/", "%2F").replace("+", "%2B").encode(), "kSecret, escaped")
        self.expect_found(SECRET.replace("/", "\\/").encode(), "kSecret, escaped as in JSON")

    def test_signing_keys_are_found(self):
        for key in SEARCH.signing_keys(SECRET, CONSTANTS["kRegion"]):
            self.expect_found(key, "a signing key of kSecret")
            self.expect_found(key.hex().encode(), "a signing key of kSecret in hexadecimal digits")

    def test_the_key_for_signing_is_that_of_the_published_example(self):
        class Day(SEARCH.datetime.datetime):
            @classmethod
            def now(cls, tz=None):
                return cls(2013, 5, 24, tzinfo=tz)

        original, SEARCH.datetime.datetime = SEARCH.datetime.datetime, Day
        try:
            keys = list(SEARCH.signing_keys("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1"))
        finally:
            SEARCH.datetime.datetime = original
        self.assertIn("dbb893acc010964918f1fd433add87c70e8b0db6be30c1fbeafefa5ec6ba8378", [key.hex() for key in keys])

    def test_what_is_printed_is_searched_and_passed_on(self):
        code, output, errors = self.run_python("import sys; print('a', sys.argv[1])", SECRET)
        self.assertEqual((code, output), (1, f"a {SECRET}\n"))
        self.assertRegex(errors, r"^secret found: /\S+/printed, offset 2: kSecret\n$")

    def test_folders_of_the_tests_stay_until_then(self):
        code, _, errors = self.run_python(
            "import os, sys, tempfile; assert os.environ['HETERO_TEST_KEEP_FOLDERS'];"
            "open(tempfile.mkdtemp() + '/left', 'w').write(sys.argv[1])", SECRET)
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"/left, offset 0: kSecret\n")

    def test_core_files_are_searched(self):
        if set(pathlib.Path("/proc/sys/kernel/core_pattern").read_text()) & set("|/"):
            self.skipTest("core files of this machine go elsewhere")
        if SEARCH.resource.getrlimit(SEARCH.resource.RLIMIT_CORE)[1] == 0:
            self.skipTest("no core files are allowed here")
        code, _, errors = self.run_python("import os, sys; text = bytes.fromhex(sys.argv[1]); os.abort()", SECRET.encode().hex())
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"/core\S*, offset \d+: kSecret\n")

    def test_core_files_are_searched_where_the_kernel_writes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("core.program.7", "core.program.9", "other")]
            for at, path in zip((100, 300, 300), files):
                path.write_text("")
                os.utime(path, (at, at))
            self.assertEqual(list(SEARCH.core_files(f"{folder}/core.%e", 200)), [files[1]])
            self.assertEqual(list(SEARCH.core_files(f"{folder}/core.%e.%p", 200)), [files[1]])
        self.assertEqual(list(SEARCH.core_files("core", 0)), [])
        self.assertEqual(list(SEARCH.core_files("|/usr/lib/systemd/systemd-coredump %P", 0)), [])


class InAFolder(unittest.TestCase):
    def search(self, files, *tokens):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            done = subprocess.run([SCRIPT, "--in", folder], input="\n".join(tokens), capture_output=True, check=False, text=True)
            return done.returncode, done.stdout + done.stderr.replace(folder, "")

    def test_secrets_of_the_server_are_found_in_each_file(self):
        self.assertEqual(self.search({"pod/0.log": "nothing", "events": "nothing"}, TOKEN), (0, ""))
        in_base64 = base64.b64encode(CONSTANTS["kKey"].encode()).decode()
        self.assertEqual(
            self.search({"pod/0.log": f"2026 stderr F {SECRET}\n", "watch/configmaps": f'"key": "{in_base64}"', "events": ""}),
            (1, "secret found: /pod/0.log, offset 14: kSecret\n"
                "secret found: /watch/configmaps, offset 8: kKey in base64\n"))

    def test_tokens_are_found_whole_and_by_their_signature(self):
        code, found = self.search({"whole": f"token={TOKEN}\n"}, "another.good.token-of-somebody", TOKEN)
        self.assertEqual(code, 1)
        self.assertIn("secret found: /whole, offset 6: token 2\n", found)
        signature = TOKEN.rpartition(".")[2]
        self.assertEqual(
            self.search({"part": f"x.{signature}"}, TOKEN), (1, "secret found: /part, offset 2: the signature of token 1\n"))
        code, found = self.search({"secret": base64.b64encode(f"a {TOKEN}".encode()).decode()}, TOKEN)
        self.assertEqual(code, 1)
        self.assertRegex(found, "secret found: /secret, offset 3: token 1 in base64\n")
        # Whose token it is may be told.
        self.assertEqual(self.search({"owner": TOKEN.rpartition(".")[0]}, TOKEN), (0, ""))

    def test_a_folder_in_which_nothing_lies_is_no_success(self):
        code, said = self.search({})
        self.assertEqual(code, 2)
        self.assertIn("there is nothing in", said)


if __name__ == "__main__":
    unittest.main()
