#include "runtime/process/output_store.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "runtime/storage/copy.h"
#include "runtime/storage/stores.h"

namespace hetero::process {
namespace {

constexpr base::Duration kPatience = std::chrono::seconds(30);
constexpr int64_t kMostBytes = int64_t{64} << 20;  // of a file of the report

constexpr char kProbe[] = ".hetero-probe";

// Each call is tried again for `patience`; time alone counts.
absl::StatusOr<std::unique_ptr<storage::WritableStore>> OpenPatiently(
    const std::string& uri, const std::vector<api::StorageAccess>& storage,
    base::Duration patience) {
  return storage::Stores(storage).OpenWritable(uri,
                                               {.most_attempts = 1'000'000, .total = patience});
}

class InStore : public head::ReportPlace {
 public:
  explicit InStore(std::unique_ptr<storage::WritableStore> store) : store_(std::move(store)) {}

  const std::string& name() const override { return store_->uri(); }
  std::string UriOf(std::string_view file) const override {
    return absl::StrCat(store_->uri(), "/", absl::string_view(file.data(), file.size()));
  }
  absl::StatusOr<std::string> Read(const std::string& file) const override {
    HETERO_ASSIGN_OR_RETURN(const storage::Object object, store_->Head(file));
    if (object.size > kMostBytes) {
      return absl::OutOfRangeError(absl::StrCat(UriOf(file), ": ", object.size, " bytes"));
    }
    std::string bytes(static_cast<size_t>(object.size), '\0');
    HETERO_RETURN_IF_ERROR(
        store_->Read(object, 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
    return bytes;
  }
  absl::Status Write(const std::string& file, const std::string& bytes) override {
    HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectWriter> writer,
                            store_->Create(file));
    HETERO_RETURN_IF_ERROR(
        writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    return writer->Close().status();
  }

 private:
  const std::unique_ptr<storage::WritableStore> store_;
};

}  // namespace

bool IsStoreUri(std::string_view uri) { return uri.starts_with("s3://"); }

absl::StatusOr<std::unique_ptr<head::ReportPlace>> ReportInStore(
    const std::string& uri, const std::vector<api::StorageAccess>& storage) {
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<storage::WritableStore> store,
                          OpenPatiently(uri, storage, kPatience));
  return std::make_unique<InStore>(std::move(store));
}

absl::Status CheckOutputStore(const std::string& uri,
                              const std::vector<api::StorageAccess>& storage) {
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::WritableStore> store,
                          OpenPatiently(uri, storage, kPatience));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectWriter> writer,
                          store->Create(kProbe));
  HETERO_RETURN_IF_ERROR(writer->Append({reinterpret_cast<const uint8_t*>(kProbe), 1}));
  HETERO_RETURN_IF_ERROR(writer->Close().status());
  store->Delete(kProbe).IgnoreError();
  return absl::OkStatus();
}

absl::Status CopyOutput(const std::string& folder, const std::vector<std::string>& names,
                        const std::string& uri, const std::vector<api::StorageAccess>& storage,
                        base::Duration patience, const std::stop_token& stop) {
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::WritableStore> store,
                          OpenPatiently(uri, storage, patience));
  for (const std::string& name : names) {
    HETERO_RETURN_IF_ERROR(storage::CopyIntoStore(folder, name, *store, stop));
  }
  return absl::OkStatus();
}

absl::Status FetchObject(const std::string& uri, const std::vector<api::StorageAccess>& storage,
                         const std::string& path) {
  return storage::CopyIntoFile(uri, storage::Stores(storage), path);
}

}  // namespace hetero::process
