#include "runtime/head/report_place.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"

namespace hetero::head {
namespace {

namespace fs = std::filesystem;

class Folder : public ReportPlace {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  const std::string& name() const override { return path_; }
  std::string UriOf(std::string_view file) const override {
    std::error_code ignored;
    const fs::path path = fs::absolute(path_, ignored) / file;
    return absl::StrCat("file://", path.lexically_normal().string());
  }
  absl::StatusOr<std::string> Read(const std::string& file) const override {
    return base::ReadFile(path_ + "/" + file);
  }
  absl::Status Write(const std::string& file, const std::string& bytes) override {
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) {
      return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create folder ", path_));
    }
    return base::WriteFileAtomically(path_ + "/" + file, bytes);
  }

 private:
  const std::string path_;
};

}  // namespace

std::unique_ptr<ReportPlace> ReportFolder(std::string path) {
  return std::make_unique<Folder>(std::move(path));
}

}  // namespace hetero::head
