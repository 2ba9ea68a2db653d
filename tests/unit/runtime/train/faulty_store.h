#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/storage/open_store.h"

namespace hetero::train {

// A folder as a store, whose faults a test asks for.
class FaultyStore : public storage::WritableStore {
 public:
  explicit FaultyStore(const std::string& folder)
      : store_(*storage::OpenWritableStore("file://" + folder)) {}

  std::atomic<bool> unreachable = false;
  bool knows_conditions = true;
  absl::Status listed;

  const std::string& uri() const override { return store_->uri(); }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view prefix) const override {
    if (unreachable) return Unreachable();
    if (!listed.ok()) return listed;
    return store_->List(prefix);
  }
  absl::StatusOr<storage::Object> Head(std::string_view name) const override {
    if (unreachable) return Unreachable();
    return store_->Head(name);
  }
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    if (unreachable) return Unreachable();
    return store_->Read(object, offset, out);
  }
  absl::StatusOr<std::unique_ptr<storage::ObjectWriter>> Create(std::string_view name) override {
    if (unreachable) return Unreachable();
    return store_->Create(name);
  }
  absl::StatusOr<storage::Object> WriteIfAbsent(std::string_view name,
                                                std::string_view bytes) override {
    if (unreachable) return Unreachable();
    return knows_conditions ? store_->WriteIfAbsent(name, bytes) : Write(name, bytes);
  }
  absl::StatusOr<storage::Object> WriteIfMatch(const storage::Object& old,
                                               std::string_view bytes) override {
    if (unreachable) return Unreachable();
    return knows_conditions ? store_->WriteIfMatch(old, bytes) : Write(old.name, bytes);
  }
  absl::Status Delete(std::string_view name) override {
    if (unreachable) return Unreachable();
    return store_->Delete(name);
  }

  absl::StatusOr<storage::Object> Write(std::string_view name, std::string_view bytes) {
    auto writer = store_->Create(name);
    if (!writer.ok()) return writer.status();
    (*writer)->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).IgnoreError();
    return (*writer)->Close();
  }

 private:
  static absl::Status Unreachable() { return absl::UnavailableError("no route to the store"); }

  const std::unique_ptr<storage::WritableStore> store_;
};

}  // namespace hetero::train
