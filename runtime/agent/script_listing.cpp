#include "runtime/agent/script_listing.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"

namespace hetero::agent {

ScriptListing::ScriptListing(std::string file, const ListedScript& script)
    : file_(std::move(file)) {
  const nlohmann::ordered_json listed = {{"name", absl::StrCat("script-", script.rank)},
                                         {"role", script.role},
                                         {"index", script.index},
                                         {"pid", script.pid}};
  // Nothing depends on it.
  base::WriteFileAtomically(file_, listed.dump() + "\n").IgnoreError();
}

ScriptListing::~ScriptListing() { unlink(file_.c_str()); }

}  // namespace hetero::agent
