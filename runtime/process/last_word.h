#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hetero/v1/membership.pb.h"

// What a worker came to, and all it has told in lists, left in a file for the launcher: a head that
// takes the place of another hears of those who have left before it only from there.
namespace hetero::process {

// The folder named by HETERO_LAST_WORDS; empty when unset.
std::string LastWordFolderFromEnvironment();

// An empty folder writes nothing. A failure is only logged: the head that lives has been told.
void WriteLastWord(const std::string& folder, const v1::Identity& rank, const v1::Finished& word);

// Of that very process; empty when it left none that can be read.
std::optional<v1::Finished> ReadLastWord(const std::string& folder, const v1::Identity& rank);

}  // namespace hetero::process
