#include "runtime/process/last_word.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "api/process_environment.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "runtime/process/identity.h"

namespace hetero::process {
namespace {

std::string FileOf(const std::string& folder, const v1::Identity& rank) {
  return absl::StrCat(folder, "/", MemberName(rank), "-", rank.incarnation(), ".word");
}

}  // namespace

std::string LastWordFolderFromEnvironment() {
  const char* folder = std::getenv(api::environment::kLastWords);
  return folder != nullptr ? folder : "";
}

void WriteLastWord(const std::string& folder, const v1::Identity& rank, const v1::Finished& word) {
  if (folder.empty()) return;
  const absl::Status written =
      base::WriteFileAtomically(FileOf(folder, rank), word.SerializeAsString());
  if (!written.ok()) log::Warning("no last word left", {{"error", written.message()}});
}

std::optional<v1::Finished> ReadLastWord(const std::string& folder, const v1::Identity& rank) {
  std::ifstream file(FileOf(folder, rank), std::ios::binary);
  v1::Finished word;
  if (!file || !word.ParseFromIstream(&file)) return std::nullopt;
  return word;
}

}  // namespace hetero::process
