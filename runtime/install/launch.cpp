// Starts the program that `hetero-runtime install` has put beside it, FOLDER/libexec/NAME for
// FOLDER/bin/NAME, with the loader and the libraries of FOLDER/lib: the image around it may have
// another C library, an older one, or none. Whatever that program starts in turn is the image's own
// again, so its environment stays as it was but for two variables: Python finds the package in
// FOLDER/python, and LD_PRELOAD, which would bring the image's libraries into this program, waits
// in HETERO_SCRIPT_LD_PRELOAD.
//
// Linked statically, without the C++ library.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/process_environment.h"

namespace {

constexpr char kPreload[] = "LD_PRELOAD";
constexpr char kPythonPath[] = "PYTHONPATH";
constexpr int kFailed = 126;  // as shells say of what was found and cannot be run

char self[4096];
char folder[4096];

[[noreturn]] void Fail(const char* what, const char* path) {
  fprintf(stderr, "hetero-launch: %s %s: %s\n", what, path, strerror(errno));
  exit(kFailed);
}

char* Joined(const char* first, const char* middle, const char* last) {
  char* text = nullptr;
  if (asprintf(&text, "%s%s%s", first, middle, last) < 0) Fail("no memory for", first);
  return text;
}

void Set(const char* name, const char* value) {
  if (setenv(name, value, 1) != 0) Fail("cannot set", name);
}

void PutPackageFirst(const char* package) {
  const char* given = getenv(kPythonPath);
  if (given == nullptr || given[0] == '\0') return Set(kPythonPath, package);
  const size_t length = strlen(package);
  const bool there =
      strncmp(given, package, length) == 0 && (given[length] == ':' || given[length] == '\0');
  if (!there) Set(kPythonPath, Joined(package, ":", given));
}

void KeepPreloadForScripts() {
  const char* given = getenv(kPreload);
  if (given == nullptr || given[0] == '\0') return;
  Set(hetero::api::environment::kScriptPreload, given);
  unsetenv(kPreload);
}

}  // namespace

int main(int argc, char** argv) {
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) Fail("cannot read", "/proc/self/exe");
  memcpy(folder, self, static_cast<size_t>(length));
  char* name = strrchr(folder, '/');
  *name++ = '\0';
  char* bin = strrchr(folder, '/');
  if (bin == nullptr) Fail("no folder above", self);
  *bin = '\0';

  const char* loader = Joined(folder, "/lib/", "ld-linux-x86-64.so.2");
  const char* libraries = Joined(folder, "/lib", "");
  const char* program = Joined(folder, "/libexec/", name);
  PutPackageFirst(Joined(folder, "/python", ""));
  KeepPreloadForScripts();

  constexpr int kOwn = 7;
  const auto count = static_cast<size_t>(kOwn + argc + 1);
  auto** arguments = static_cast<const char**>(calloc(count, sizeof(char*)));
  if (arguments == nullptr) Fail("no memory for the arguments of", program);
  const char* own[kOwn] = {loader, "--inhibit-cache", "--library-path", libraries, "--argv0", self,
                           program};
  memcpy(arguments, own, sizeof own);
  for (int i = 1; i < argc; ++i) arguments[kOwn + i - 1] = argv[i];
  execv(loader, const_cast<char**>(arguments));
  Fail("cannot start", loader);
}
