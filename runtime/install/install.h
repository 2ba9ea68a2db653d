#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

// Puts this very program into a folder from which it runs in any Linux image of its architecture,
// whatever C library that has; for volumes that a container of our image shares with one of the
// user's.
namespace hetero::install {

struct Options {
  std::string folder;  // made when it is not there
  std::string
      package;  // the folder that holds the Python package `hetero`; empty: where images have it
};

struct Installed {
  std::string program;  // what to start: <folder>/bin/<name of this program>
  std::string python;   // for PYTHONPATH: <folder>/python
  int64_t files = 0;
  int64_t bytes = 0;
};

//   bin/NAME      a static program that starts the next one with the loader and the libraries below
//   libexec/NAME  this program
//   lib/          the loader and all shared libraries of this process
//   python/       the package
// Files are read back after they were written, and the installed program is run once and must name
// this version. What is already there is left as it is: a second run repairs and repeats nothing.
// Errors name the file or volume and say what to do: a full volume (ResourceExhausted), one that no
// program may run from or that is read-only (FailedPrecondition), a package that is not there
// (NotFound).
absl::StatusOr<Installed> Install(const Options& options);

}  // namespace hetero::install
