#pragma once

#include <string>

namespace hetero::install {

// By which this program can be started again. One that `hetero-runtime install` has copied runs
// under its own loader, which is what /proc/self/exe then names; its path is that of the launcher.
// Empty: not known.
std::string ProgramPath();

// The file that holds this program's code: ProgramPath(), but of an installed one the file beside
// the launcher's folder.
std::string ProgramFile();

}  // namespace hetero::install
