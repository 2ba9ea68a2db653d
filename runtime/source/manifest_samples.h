#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/manifest_entry.h"
#include "runtime/source/sample_rule.h"
#include "runtime/storage/object_uri.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// Opens the store of an object, at the object's root: "s3://bucket", "https://host", "file:///".
// Objects that one store reaches get the same one each time.
using StoreOpener = std::function<absl::StatusOr<std::shared_ptr<const storage::Store>>(
    const storage::ObjectUri& object)>;

// The samples that a manifest lists: which object each is, and its label. 24 bytes a sample, its
// path and its numbers. Internal to manifest.
class ManifestSamples {
 public:
  // Of the manifest `object` in `store`; relative paths begin in its folder. `rule` outlives it.
  ManifestSamples(const storage::ObjectUri& object, std::shared_ptr<const storage::Store> store,
                  StoreOpener open, const SampleRule& rule);

  // Appends a sample. kInvalidArgument: a path that is no object's or leaves its folder, a store
  // that this manifest may not name, a label that is no class. Other errors are the stores'.
  absl::Status Add(const ManifestEntry& entry);
  // Orders the classes. Nothing is added any more.
  absl::Status Finish();

  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  const storage::Store& StoreOf(int64_t id) const { return *bases_[rows_[id].base].store; }
  bool any_is_remote() const {
    return std::any_of(bases_.begin(), bases_.end(),
                       [](const Base& base) { return base.store->is_remote(); });
  }
  std::string NameOf(int64_t id) const;  // below that store's root
  int64_t LineOf(int64_t id) const { return rows_[id].line; }
  int32_t ClassOf(int64_t id) const { return rows_[id].label; }
  // Of the mask, as of the picture; an empty name where the manifest names none for this sample.
  const storage::Store& StoreOfMask(int64_t id) const { return *bases_[masks_[id].base].store; }
  std::string NameOfMask(int64_t id) const;
  // The label's numbers, as RawSample has them.
  std::vector<uint8_t> NumbersOf(int64_t id) const;
  int32_t highest_class() const { return highest_class_; }
  // Where classes have names, those by class; else none.
  const std::vector<std::string>& class_names() const { return class_names_; }
  // Of paths as far as they are the manifest's own, and labels.
  void AddTo(Fingerprint* print) const;

 private:
  struct Row {
    uint64_t end = 0;  // of its path, in paths_
    uint32_t line = 0;
    uint32_t base = 0;
    int32_t label = 0;
  };
  struct MaskRow {
    uint64_t end = 0;  // of its path, in mask_paths_
    uint32_t base = 0;
  };
  // Where paths begin.
  struct Base {
    std::string root;
    std::shared_ptr<const storage::Store> store;
    std::string folder;  // before each path: "" or "a/b/"
  };

  // Below which base an object is, and its path from there.
  absl::StatusOr<uint32_t> Resolve(std::string_view path, std::string* rest);
  absl::StatusOr<uint32_t> BaseOf(const storage::ObjectUri& object);
  absl::StatusOr<int32_t> TakeClass(const std::string& label, bool is_folder);
  absl::Status AddMask(const std::string& path);
  std::string_view PathOf(int64_t id) const;
  std::string_view MaskPathOf(int64_t id) const;
  void AddPlace(uint32_t base, std::string_view path, Fingerprint* print) const;

  const StoreOpener open_;
  const SampleRule& rule_;
  std::vector<Base> bases_;  // the first one is the manifest's folder
  std::string paths_;        // of all samples, one behind the other
  std::vector<Row> rows_;
  std::string mask_paths_;
  std::vector<MaskRow> masks_;  // of all samples, or none
  std::vector<uint8_t> numbers_;
  bool classes_are_names_ = false;
  bool classes_are_folders_ = false;
  std::unordered_map<std::string, int32_t> class_ids_;  // in the order in which they come
  std::vector<std::string> class_names_;
  int32_t highest_class_ = -1;
};

}  // namespace hetero::source
