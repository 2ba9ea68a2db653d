#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/source/manifest.h"

namespace hetero::source {

// A bucket or a server in memory, which counts what it is asked.
class HeldStore : public storage::Store {
 public:
  explicit HeldStore(std::string uri) : uri_(std::move(uri)) {}

  void Put(const std::string& name, std::string_view bytes, const std::string& version = "v1") {
    objects_[name] = {std::string(bytes), version};
  }
  // Says that the object is so large, which it is not.
  void Claim(const std::string& name, int64_t size) { claimed_[name] = size; }
  void Remove(const std::string& name) { objects_.erase(name); }
  int reads() const { return reads_; }
  int heads() const { return heads_; }

  const std::string& uri() const override { return uri_; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view) const override {
    return absl::UnimplementedError("nothing is listed for a manifest");
  }
  absl::StatusOr<storage::Object> Head(std::string_view name) const override {
    ++heads_;
    const auto found = objects_.find(std::string(name));
    if (found == objects_.end()) return Missing(name);
    const auto claimed = claimed_.find(std::string(name));
    const auto size = static_cast<int64_t>(found->second.first.size());
    return storage::Object{std::string(name), claimed == claimed_.end() ? size : claimed->second,
                           found->second.second};
  }
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    ++reads_;
    if (!error.ok()) return error;
    const std::string& bytes = objects_.at(object.name).first;
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return absl::OkStatus();
  }
  absl::StatusOr<storage::Object> ReadAll(std::string_view name, int64_t limit,
                                          std::vector<uint8_t>* bytes) const override {
    ++reads_;
    const auto found = objects_.find(std::string(name));
    if (found == objects_.end()) return Missing(name);
    if (claimed_.contains(std::string(name))) return absl::OutOfRangeError("it has more bytes");
    bytes->assign(found->second.first.begin(), found->second.first.end());
    return storage::Object{std::string(name), static_cast<int64_t>(bytes->size()),
                           found->second.second};
  }

  absl::Status error;  // of Read()

 private:
  absl::Status Missing(std::string_view name) const {
    return absl::NotFoundError(absl::StrCat("cannot read ", uri_, "/", std::string(name)));
  }

  const std::string uri_;
  std::map<std::string, std::pair<std::string, std::string>> objects_;
  std::map<std::string, int64_t> claimed_;
  mutable int reads_ = 0;
  mutable int heads_ = 0;
};

// Stores by their roots, each made when it is first named, and a manifest in one of them.
class ManifestStores {
 public:
  HeldStore& At(const std::string& root) {
    std::shared_ptr<HeldStore>& store = stores_[root];
    if (store == nullptr) store = std::make_shared<HeldStore>(root);
    return *store;
  }
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& uri,
                                                const api::DatasetSource& source = {},
                                                const api::Label& label = {}) {
    return OpenManifest(uri, Opener(), source, label);
  }
  StoreOpener Opener() {
    return [this](const storage::ObjectUri& object)
               -> absl::StatusOr<std::shared_ptr<const storage::Store>> {
      At(object.root);
      return stores_[object.root];
    };
  }
  // Of a manifest s3://bucket/lists/NAME with this text.
  absl::StatusOr<std::unique_ptr<Dataset>> OpenText(std::string_view text,
                                                    const api::Label& label = {},
                                                    const api::DatasetSource& source = {},
                                                    const std::string& name = "train.manifest") {
    At("s3://bucket").Put("lists/" + name, text);
    return Open("s3://bucket/lists/" + name, source, label);
  }
  std::string ErrorOf(std::string_view text, const api::Label& label = {},
                      const api::DatasetSource& source = {},
                      const std::string& name = "train.manifest") {
    const auto dataset = OpenText(text, label, source, name);
    EXPECT_FALSE(dataset.ok()) << "it was opened";
    EXPECT_TRUE(absl::IsInvalidArgument(dataset.status())) << dataset.status();
    return std::string(dataset.status().message());
  }

 private:
  std::map<std::string, std::shared_ptr<HeldStore>> stores_;
};

inline std::vector<std::string> PlacesIn(const Dataset& dataset) {
  std::vector<std::string> places;
  for (int64_t id = 0; id < dataset.size(); ++id) places.push_back(dataset.Describe(id));
  return places;
}

}  // namespace hetero::source
