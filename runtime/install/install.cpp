#include "runtime/install/install.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "runtime/install/copy_file.h"
#include "runtime/install/launcher.h"
#include "runtime/install/loaded_files.h"
#include "runtime/install/program_path.h"
#include "runtime/install/python_package.h"
#include "runtime/install/trial_run.h"

namespace hetero::install {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestFile = int64_t{1} << 30;
constexpr char kLoader[] = "ld-linux-x86-64.so.2";

// A file to be made: of a file's bytes, or of those given.
struct Item {
  fs::path path;
  fs::path source;
  std::string_view bytes;
  bool executable = false;
};

absl::Status PackageMissing(const fs::path& folder) {
  return absl::NotFoundError(absl::StrCat(
      "the Python package is not in ", folder.string(),
      ": there is no hetero/__init__.py; name its folder with --package (in the sources: python)"));
}

absl::StatusOr<fs::path> FindPackage(const Options& options) {
  if (!options.package.empty()) {
    if (!HoldsPackage(options.package)) return PackageMissing(options.package);
    return options.package;
  }
  const std::string installed = InstalledPackage(ProgramPath());
  if (!installed.empty()) return installed;
  const fs::path prefix = fs::path(ProgramPath()).parent_path().parent_path();
  return PackageMissing(prefix / "share" / "hetero" / "python");
}

absl::Status AddPackage(const fs::path& package, const fs::path& to, std::vector<Item>& items) {
  std::error_code error;
  const fs::path root = package / "hetero";
  for (fs::recursive_directory_iterator file(root, error), end; !error && file != end;
       file.increment(error)) {
    if (file->path().filename() == "__pycache__") {
      file.disable_recursion_pending();
    } else if (file->is_regular_file(error)) {
      items.push_back(
          {.path = to / "hetero" / file->path().lexically_relative(root), .source = file->path()});
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", root.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Item>> ItemsFor(const Options& options) {
  const fs::path folder = options.folder;
  const fs::path file = ProgramFile();
  if (file.empty())
    return absl::InternalError("this program does not know its own path: is /proc mounted?");
  const fs::path name = fs::path(ProgramPath()).filename();
  std::vector<Item> items = {
      {.path = folder / "bin" / name, .bytes = Launcher(), .executable = true},
      {.path = folder / "libexec" / name, .source = file, .executable = true}};
  bool loader = false;
  for (const fs::path library : LoadedLibraries()) {
    loader = loader || library.filename() == kLoader;
    items.push_back(
        {.path = folder / "lib" / library.filename(), .source = library, .executable = true});
  }
  if (!loader) {
    return absl::FailedPreconditionError(absl::StrCat("this program was not loaded by ", kLoader,
                                                      ", without which a copy cannot start"));
  }
  HETERO_ASSIGN_OR_RETURN(const fs::path package, FindPackage(options));
  HETERO_RETURN_IF_ERROR(AddPackage(package, folder / "python", items));
  return items;
}

absl::Status WithRemedy(const absl::Status& status, const std::string& folder) {
  if (absl::IsResourceExhausted(status)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(status.message(), "; the volume of ", folder, " is full: give it 200 MiB"));
  }
  if (absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(status.message(), "; this user must be able to write to ", folder));
  }
  return status;
}

absl::Status CheckVolume(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return WithRemedy(absl::ErrnoToStatus(error.value(), "cannot create " + folder), folder);
  }
  struct statvfs volume;
  if (statvfs(folder.c_str(), &volume) != 0) {
    return absl::ErrnoToStatus(errno, "cannot look at the volume of " + folder);
  }
  if ((volume.f_flag & ST_NOEXEC) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the volume of ", folder,
                   " is mounted noexec, so that no program can run from it: mount it without that "
                   "option, or use another volume"));
}

absl::StatusOr<int64_t> Put(const Item& item) {
  if (item.source.empty()) {
    HETERO_RETURN_IF_ERROR(PutFile(item.path, item.bytes, item.executable));
    return static_cast<int64_t>(item.bytes.size());
  }
  HETERO_ASSIGN_OR_RETURN(const std::string bytes, base::ReadFile(item.source, kLargestFile));
  HETERO_RETURN_IF_ERROR(PutFile(item.path, bytes, item.executable));
  return static_cast<int64_t>(bytes.size());
}

absl::Status CheckRuns(const std::string& program) {
  HETERO_ASSIGN_OR_RETURN(const std::string said, TrialRun({program, "--version"}));
  if (said.ends_with(base::DescribeVersion())) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(program, " says it is \"", said, "\" instead of ",
                                          base::DescribeVersion(), ": something else is there"));
}

}  // namespace

absl::StatusOr<Installed> Install(const Options& options) {
  std::error_code error;
  Options absolute = options;
  absolute.folder = fs::absolute(options.folder, error).lexically_normal().string();
  if (error || options.folder.empty()) {
    return absl::InvalidArgumentError("the folder to install into has no name");
  }
  HETERO_ASSIGN_OR_RETURN(const std::vector<Item> items, ItemsFor(absolute));
  HETERO_RETURN_IF_ERROR(CheckVolume(absolute.folder));
  Installed installed;
  for (const Item& item : items) {
    const absl::StatusOr<int64_t> bytes = Put(item);
    if (!bytes.ok()) return WithRemedy(bytes.status(), absolute.folder);
    ++installed.files;
    installed.bytes += *bytes;
  }
  installed.program = items.front().path.string();
  installed.python = (fs::path(absolute.folder) / "python").string();
  HETERO_RETURN_IF_ERROR(CheckRuns(installed.program));
  return installed;
}

}  // namespace hetero::install
