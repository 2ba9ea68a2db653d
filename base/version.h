#pragma once

#include <string>
#include <string_view>

namespace hetero::base {

// Of this source tree, by Semantic Versioning; docs/releases.md says which commit each one is.
inline constexpr char kVersion[] = "0.3.0";

// The commit that this program was built from: "ce2b346", with "-dirty" when its files were
// changed; "unknown" when the sources were no git checkout and nobody named one
// (-DHETERO_COMMIT=...).
const char* Commit();

// For people: "0.1.0 (ce2b346)".
std::string DescribeVersion();

// For files, in the form of Semantic Versioning: "0.1.0+ce2b346"; "0.1.0" alone when the commit is
// empty or unknown.
std::string FullVersion(std::string_view version = kVersion, std::string_view commit = Commit());

}  // namespace hetero::base
