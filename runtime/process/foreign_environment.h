#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetero::process {

// Whether a variable is for our programs alone: who they are, where the head is, and keys of
// stores, which no program of the user may see.
bool IsForUsAlone(std::string_view variable_name);

// Of this process, "NAME=value" each, for a program of the user's: without what is for us alone,
// and with the LD_PRELOAD that the launcher of this program kept for others.
std::vector<std::string> ForeignEnvironment();

}  // namespace hetero::process
