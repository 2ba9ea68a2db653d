#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/source/byte_stream.h"
#include "runtime/source/sample_rule.h"

// What the ways to write a manifest have in common. Internal to manifest.
namespace hetero::source {

// What a manifest says of one sample.
struct ManifestEntry {
  std::string path;              // as it stands there, behind the prefix where there is one
  std::string mask;              // its path, where the rule wants one; may be empty
  std::string label;             // a class: its number or its name
  bool label_is_folder = false;  // then it is a name, if it looks like a number, too
  std::vector<uint8_t> numbers;  // of a label that is no class
  int64_t line = 0;              // where it stands, from 1; of a list: which element it is, from 0
};

// Takes one entry; the parser adds to an error where the entry stands.
using ManifestSink = std::function<absl::Status(const ManifestEntry& entry)>;

// Of a line, a record, an element of a list: more than the largest label has.
inline constexpr size_t kMostEntryBytes = size_t{4} << 20;

// Each parser reads a manifest to its end. kInvalidArgument names the object, the line or the byte,
// what is wrong there and what to do. A sink's errors keep their code, and the store's are its own.

// SageMaker's ManifestFile: a list of paths, before them {"prefix": ...} or not. A picture's class
// is the first folder of its path behind the prefix.
absl::Status ReadManifestList(ByteStream& text, const SampleRule& rule, const ManifestSink& sink);

// SageMaker's AugmentedManifestFile: a JSON object on each line. Where `rule` names no label, it is
// the only attribute whose name does not end with "-ref" or "-metadata". A name that no attribute
// has is a path: "class-metadata/class-name".
absl::Status ReadManifestLines(ByteStream& text, const SampleRule& rule, const ManifestSink& sink);

// RFC 4180. The first record is a header where it has a name that `rule` looks for; with `named`
// those are the user's, and it has to. Without a header there are a path and a label.
absl::Status ReadManifestCsv(ByteStream& text, char separator, const SampleRule& rule, bool named,
                             const ManifestSink& sink);

}  // namespace hetero::source
