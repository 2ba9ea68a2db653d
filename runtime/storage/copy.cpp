#include "runtime/storage/copy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/storage/object_uri.h"
#include "runtime/storage/open_store.h"

namespace hetero::storage {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = size_t{1} << 20;
constexpr size_t kRead = size_t{16} << 20;  // of an object, at once

absl::Status CopyFile(const std::string& path, const std::string& name, WritableStore& store,
                      const std::stop_token& stop) {
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  const auto close = absl::MakeCleanup([file] { std::fclose(file); });
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectWriter> writer, store.Create(name));
  std::vector<uint8_t> block(kBlock);
  while (const size_t size = std::fread(block.data(), 1, block.size(), file)) {
    if (stop.stop_requested()) return absl::CancelledError(absl::StrCat(path, ": stopped"));
    HETERO_RETURN_IF_ERROR(writer->Append({block.data(), size}));
  }
  if (std::ferror(file) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  }
  return writer->Close().status();
}

}  // namespace

absl::Status CopyIntoStore(const std::string& folder, const std::string& name, WritableStore& store,
                           const std::stop_token& stop) {
  const fs::path root(folder);
  std::error_code error;
  if (fs::is_regular_file(root / name, error)) {
    return CopyFile((root / name).string(), name, store, stop);
  }
  std::vector<std::string> names;
  for (fs::recursive_directory_iterator entry(root / name, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file(error)) {
      names.push_back(entry->path().lexically_relative(root).string());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat((root / name).string(), ": cannot be read"));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& one : names) {
    HETERO_RETURN_IF_ERROR(CopyFile((root / one).string(), one, store, stop));
  }
  return absl::OkStatus();
}

absl::Status CopyIntoFile(const std::string& uri, const Stores& stores, const std::string& path) {
  HETERO_ASSIGN_OR_RETURN(const ObjectUri named, ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<Store> from, stores.OpenRootOf(named));
  HETERO_ASSIGN_OR_RETURN(const Object object, from->Head(named.name));
  const fs::path file(path);
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<WritableStore> to,
                          OpenWritableStore("file://" + file.parent_path().string()));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectWriter> writer,
                          to->Create(file.filename().string()));
  std::vector<uint8_t> block(kRead);
  for (int64_t at = 0; at < object.size; at += static_cast<int64_t>(kRead)) {
    const size_t size = std::min(kRead, static_cast<size_t>(object.size - at));
    HETERO_RETURN_IF_ERROR(from->Read(object, at, {block.data(), size}));
    HETERO_RETURN_IF_ERROR(writer->Append({block.data(), size}));
  }
  return writer->Close().status();
}

}  // namespace hetero::storage
