#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hetero::head {

// Where a head leaves the report: a few small files. Not thread-safe.
class ReportPlace {
 public:
  virtual ~ReportPlace() = default;

  // For messages: the folder's path, or a URI.
  virtual const std::string& name() const = 0;
  // "file:///out/report.json"
  virtual std::string UriOf(std::string_view file) const = 0;
  // kNotFound: there is none.
  virtual absl::StatusOr<std::string> Read(const std::string& file) const = 0;
  // Replaces it as a whole; what is missing above it is made.
  virtual absl::Status Write(const std::string& file, const std::string& bytes) = 0;
};

// A folder of this machine.
std::unique_ptr<ReportPlace> ReportFolder(std::string path);

}  // namespace hetero::head
