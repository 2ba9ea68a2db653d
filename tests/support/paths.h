#pragma once

#include <string>

namespace hetero::testing {

// Where the tests were built from and into, without a slash at the end. Functions, not macros of
// the command line: what is compiled in one clone is the same in another, and ccache knows it
// there.
const std::string& SourceDir();
const std::string& BinDir();  // of the programs

}  // namespace hetero::testing
