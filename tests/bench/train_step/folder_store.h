#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>

#include "runtime/train/process_group/key_value_store.h"

namespace hetero::train {

// A KeyValueStore in a file, for ranks of one machine that have no head. Throws what LibTorch
// throws.
class FolderStore : public KeyValueStore {
 public:
  explicit FolderStore(const std::string& folder)
      : store_(c10::make_intrusive<c10d::FileStore>(folder + "/store", 2)) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    store_->set(key, value);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(const std::string& key, base::Duration) override {
    return store_->get_to_str(key);
  }
  absl::Status Wait(const std::vector<std::string>& keys, base::Duration) override {
    store_->wait(keys);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys) override {
    return store_->check(keys);
  }
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) override {
    return store_->add(key, amount);
  }
  absl::StatusOr<std::string> CompareSet(const std::string& key, const std::string& expected,
                                         const std::string& desired) override {
    const std::vector<uint8_t> before(expected.begin(), expected.end());
    const std::vector<uint8_t> after(desired.begin(), desired.end());
    const std::vector<uint8_t> value = store_->compareSet(key, before, after);
    return std::string(value.begin(), value.end());
  }
  absl::StatusOr<bool> Delete(const std::string& key) override { return store_->deleteKey(key); }
  absl::StatusOr<int64_t> CountKeys() override { return store_->getNumKeys(); }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace hetero::train
