"""scripts/check_structure.py on a small tree: it passes as it is, and each planted violation is told by file and line."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_structure.py"

TREE = {
    "scripts/dependencies.txt": """[libraries]
absl: absl/ | absl::*
grpc: grpcpp/ | gRPC::*
system: sys/ unistd.h
[calls]
clock: steady_clock::now
[folders]
base:
    absl clock(clock)
proto:
api: base
runtime/head: base proto api
    grpc(server)

[circles]
""",
    "docs/architecture.md": """# Rules

<!-- Printed by scripts/check_structure.py --write from scripts/dependencies.txt: edit that. -->
<!-- End of the printed table. -->
""",
    "base/CMakeLists.txt": "hetero_library(base\n  SOURCES clock.cpp\n  PUBLIC absl::status\n)\n",
    "base/clock.h": '#include <chrono>\n#include <sys/types.h>\n\n#include "absl/status/status.h"\n',
    "base/clock.cpp": '#include "base/clock.h"\nauto now = std::chrono::steady_clock::now();  // the machine\'s\n',
    "proto/hetero/v1/feed.proto": 'syntax = "proto3";\n',
    "api/CMakeLists.txt": "hetero_library(api\n  SOURCES manifest.cpp\n  PUBLIC hetero::base  # for its clock\n)\n",
    "api/manifest.h": '#include "base/clock.h"\n',
    "api/manifest.cpp": '#include "api/manifest.h"\n',
    "runtime/head/server.cpp": '#include <grpcpp/server.h>\n\n#include "api/manifest.h"\n#include "base/clock.h"\n'
                               '#include "hetero/v1/feed.grpc.pb.h"\n',
    "tests/unit/api/manifest_test.cpp": '#include <gtest/gtest.h>\n\n#include "api/manifest.h"\n',
}


class CheckStructure(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for path, text in TREE.items():
            self.plant(path, text)
        self.assertEqual(self.run_script("--write"), (0, ""))

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def replace(self, path, old, new):
        text = (self.root / path).read_text()
        self.assertIn(old, text)
        self.plant(path, text.replace(old, new))

    def run_script(self, *options):
        done = subprocess.run([sys.executable, SCRIPT, "--root", self.root, *options], capture_output=True, text=True,
                              check=False, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
        return done.returncode, done.stderr

    def expect(self, *messages):
        """One finding per message, each a line that begins with it up to its '...' and then holds the rest."""
        code, output = self.run_script()
        self.assertEqual((code, len(output.splitlines())), (1, len(messages)), output)
        for message in messages:
            begin, _, rest = message.partition("...")
            self.assertTrue(any(line.startswith(begin) and rest in line for line in output.splitlines()), output)

    def test_the_tree_holds(self):
        self.assertEqual(self.run_script(), (0, ""))

    def test_a_folder_that_the_row_does_not_allow(self):
        self.plant("base/log.h", '\n#include "hetero/v1/feed.pb.h"\n')
        self.expect('base/log.h:2: #include "hetero/v1/feed.pb.h": base may not use proto (scripts/dependencies.txt:8); ')

    def test_a_library_that_the_row_does_not_allow(self):
        self.plant("api/manifest.cpp", "#include <grpcpp/grpcpp.h>\n")
        self.expect("api/manifest.cpp:1: #include <grpcpp/grpcpp.h>: api may not use grpc ")

    def test_a_library_in_another_file_than_the_row_names(self):
        self.plant("runtime/head/state.h", "#include <grpcpp/grpcpp.h>\n")
        self.expect("runtime/head/state.h:1: ...in runtime/head only server may use grpc")

    def test_a_standard_header_that_the_table_names(self):
        self.replace("scripts/dependencies.txt", "system:", "locks: mutex\nsystem:")
        self.replace("scripts/dependencies.txt", "clock(clock)", "clock(clock) locks(log)")
        self.run_script("--write")
        self.plant("base/log.h", "#include <mutex>\n")
        self.plant("base/clock.cpp", "#include <mutex>\nauto now = std::chrono::steady_clock::now();\n")
        self.expect("base/clock.cpp:1: #include <mutex>: in base only log may use locks")

    def test_a_header_that_nobody_knows(self):
        self.plant("api/manifest.cpp", '#include "manifest.h"\n#include <curl/curl.h>\n')
        self.expect('api/manifest.cpp:1: #include "manifest.h": neither a file', "api/manifest.cpp:2: #include <curl/curl.h>")

    def test_a_call_of_the_clock(self):
        self.plant("api/manifest.cpp", "// not steady_clock::now()\nauto now = std::chrono::steady_clock::now();\n")
        self.expect("api/manifest.cpp:2: steady_clock::now: api may not use clock")

    def test_a_folder_without_a_row(self):
        self.plant("runtime/feed/window.h", "#include <string>\n")
        self.expect("runtime/feed/window.h:1: runtime/feed has no row")

    def test_a_product_file_that_includes_a_test(self):
        self.plant("api/manifest.cpp", '#include "tests/unit/api/manifest_test.cpp"\n')
        self.expect("api/manifest.cpp:1: ...api may not use tests/unit/api")

    def test_entries_that_nothing_uses(self):
        self.plant("runtime/head/server.cpp", '#include "base/clock.h"\n#include "hetero/v1/feed.grpc.pb.h"\n')
        self.expect("scripts/dependencies.txt:12: nothing in runtime/head uses api any more",
                    "scripts/dependencies.txt:12: nothing in runtime/head uses grpc any more",
                    "scripts/dependencies.txt:1: nothing uses grpc any more")

    def test_a_named_file_that_does_not_use_it(self):
        self.replace("scripts/dependencies.txt", "grpc(server)", "grpc(server state)")
        self.run_script("--write")
        self.expect("scripts/dependencies.txt:12: state in runtime/head does not use grpc any more")

    def test_files_that_include_one_another(self):
        self.plant("tests/support/a.h", '#include "tests/support/b.h"\n')
        self.plant("tests/support/b.h", '#include "tests/support/a.h"\n')
        self.expect("tests/support/a.h:1: ...tests/support/a.h -> tests/support/b.h -> tests/support/a.h")

    def plant_circle_of_folders(self):
        self.replace("scripts/dependencies.txt", "base:\n", "base: api(log)\n")
        self.run_script("--write")
        self.plant("base/log.cpp", '#include "api/manifest.h"\n')

    def test_folders_that_include_one_another(self):
        self.plant_circle_of_folders()
        self.expect("scripts/dependencies.txt:8: base includes api, so its row belongs below",
                    "base/log.cpp:1: ...folders include one another: api -> base -> api")

    def test_named_circles(self):
        self.plant_circle_of_folders()
        self.replace("scripts/dependencies.txt", "[circles]\n", "[circles]\napi base\n")
        self.assertEqual(self.run_script("--write"), (0, ""))
        self.plant("base/log.cpp", "")
        self.replace("scripts/dependencies.txt", "base: api(log)\n", "base:\n")
        self.run_script("--write")
        self.expect("scripts/dependencies.txt:16: api base do not all include one another")

    def test_a_row_above_one_that_it_includes(self):
        self.replace("scripts/dependencies.txt", "api: base\n", "")
        self.replace("scripts/dependencies.txt", "    grpc(server)\n", "    grpc(server)\napi: base\n")
        self.run_script("--write")
        self.expect("scripts/dependencies.txt:11: runtime/head includes api, so its row belongs below that one")

    def test_link_lines(self):
        self.replace("base/CMakeLists.txt", "absl::status", "absl::status hetero::api gRPC::grpc++")
        self.expect("base/CMakeLists.txt:1: base links hetero::api", "base/CMakeLists.txt:1: base links gRPC::grpc++")

    def test_a_long_file_and_a_high_median(self):
        self.plant("api/manifest.h", '#include "base/clock.h"\n' + "\n" * 400)
        self.expect("api/manifest.h:401: 401 lines")
        self.plant("api/manifest.h", '#include "base/clock.h"\n' + "\n" * 399)
        for name in ("base/one", "base/two", "base/three", "base/four"):
            self.plant(f"{name}.cpp", "\n" * 110)
        self.expect("scripts/dependencies.txt:1: the median source has 110 lines")

    def test_a_document_that_says_otherwise(self):
        self.replace("docs/architecture.md", "| `api` | `base` | |", "| `api` | | |")
        self.expect("docs/architecture.md:9: is not what scripts/dependencies.txt says")
        self.plant("docs/architecture.md", "no markers\n")
        self.expect("docs/architecture.md:1: the table belongs between")

    def test_a_table_that_cannot_be_read(self):
        self.replace("scripts/dependencies.txt", "proto:\n", "proto\n")
        self.expect("scripts/dependencies.txt:10: expected 'name: ...'")
        self.replace("scripts/dependencies.txt", "proto\n", "base:\n")
        self.expect("scripts/dependencies.txt:10: base has a row already, in line 8")

    def suggestion(self):
        done = subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--suggest"], capture_output=True, text=True,
                              check=True)
        return done.stdout

    def test_the_suggestion_for_a_table_that_holds_is_itself(self):
        self.assertEqual(self.suggestion(), TREE["scripts/dependencies.txt"])

    def test_what_is_suggested_holds(self):
        self.plant("runtime/feed/window.h", '#include <grpcpp/server.h>\n#include "runtime/head/state.h"\n')
        self.plant("runtime/head/state.h", "")
        self.plant("runtime/head/server.cpp", '#include "runtime/feed/window.h"\n')
        self.plant("base/log.h", '#include "proto/hetero/v1/feed.proto"\n')
        table = self.suggestion()
        self.assertTrue(table.endswith("[folders]\nproto:\nbase: proto\n    absl clock(clock)\napi: base\n"
                                       "runtime/head: runtime/feed\nruntime/feed: runtime/head\n    grpc(window)\n\n"
                                       "[circles]\nruntime/feed runtime/head\n"), table)
        self.plant("scripts/dependencies.txt", table)
        self.assertEqual(self.run_script("--write"), (0, ""))


if __name__ == "__main__":
    unittest.main()
