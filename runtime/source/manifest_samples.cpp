#include "runtime/source/manifest_samples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/job/field_set.h"
#include "runtime/source/picture_listing.h"
#include "runtime/storage/object_name.h"

namespace hetero::source {
namespace {

// Each has connections of its own.
constexpr size_t kMostStores = 64;
// More are no classes but what is another one in each line.
constexpr size_t kMostClasses = 1'000'000;
constexpr size_t kMostShownLabel = 64;  // bytes

bool IsWhole(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// What comes from elsewhere names nothing that only this machine reaches.
absl::Status CheckAllowed(const std::string& from, const std::string& to) {
  const auto begins = [](const std::string& root, const char* scheme) {
    return absl::StartsWith(root, scheme);
  };
  if (begins(from, "file://") || begins(to, "s3://") || begins(to, "https://") ||
      (begins(from, "http://") && begins(to, "http://"))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("names an object at ", to, ", which a manifest at ", from,
                   " may not: it could mean another one on each machine. Name s3:// or https://, "
                   "or keep the manifest as a file"));
}

}  // namespace

ManifestSamples::ManifestSamples(const storage::ObjectUri& object,
                                 std::shared_ptr<const storage::Store> store, StoreOpener open,
                                 const SampleRule& rule)
    : open_(std::move(open)), rule_(rule) {
  bases_.push_back(
      {object.root, std::move(store), object.name.substr(0, object.name.rfind('/') + 1)});
}

absl::Status ManifestSamples::Add(const ManifestEntry& entry) {
  if (rows_.size() == storage::kMostListedObjects) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is one of more than ", storage::kMostListedObjects, " samples; put them into shards"));
  }
  Row row{.line = static_cast<uint32_t>(entry.line)};
  std::string path;
  HETERO_ASSIGN_OR_RETURN(row.base, Resolve(entry.path, &path));
  if (rule_.classes()) {
    HETERO_ASSIGN_OR_RETURN(row.label, TakeClass(entry.label, entry.label_is_folder));
  }
  if (rule_.masks()) HETERO_RETURN_IF_ERROR(AddMask(entry.mask));
  paths_ += path;
  row.end = paths_.size();
  rows_.push_back(row);
  numbers_.insert(numbers_.end(), entry.numbers.begin(), entry.numbers.end());
  return absl::OkStatus();
}

absl::Status ManifestSamples::AddMask(const std::string& path) {
  MaskRow row;
  if (!path.empty()) {
    std::string name;
    HETERO_ASSIGN_OR_RETURN(row.base, Resolve(path, &name));
    mask_paths_ += name;
  }
  row.end = mask_paths_.size();
  masks_.push_back(row);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ManifestSamples::Resolve(std::string_view path, std::string* rest) {
  absl::string_view text(path.data(), path.size());
  const bool is_local = absl::StartsWith(bases_.front().root, "file://");
  const auto wrong = [](const absl::Status& status) {
    return absl::InvalidArgumentError(
        absl::StrCat("names no picture: ", status.message(),
                     "; a path begins in the manifest's folder, or is a whole URI"));
  };
  if (absl::StrContains(text, "://") || (is_local && absl::StartsWith(text, "/"))) {
    absl::StatusOr<storage::ObjectUri> object = storage::ParseObjectUri(
        absl::StartsWith(text, "/") ? absl::StrCat("file://", text) : std::string(text));
    if (!object.ok()) return wrong(object.status());
    *rest = object->name;
    return BaseOf(*object);
  }
  while (absl::ConsumePrefix(&text, "./")) {
  }
  *rest = std::string(text);
  const Base& own = bases_.front();
  absl::Status status = storage::CheckObjectName(own.root, absl::StrCat(own.folder, text));
  if (text.empty()) status = absl::InvalidArgumentError("the path is empty");
  if (absl::StartsWith(text, "/")) {
    status = absl::InvalidArgumentError(absl::StrCat(text, " begins with \"/\""));
  }
  if (!status.ok()) return wrong(status);
  return 0;
}

absl::StatusOr<uint32_t> ManifestSamples::BaseOf(const storage::ObjectUri& object) {
  const Base& own = bases_.front();
  HETERO_RETURN_IF_ERROR(CheckAllowed(own.root, object.root));
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<const storage::Store> store, open_(object));
  const auto found = std::find_if(bases_.begin(), bases_.end(), [&](const Base& base) {
    return base.store == store && base.root == object.root && base.folder.empty();
  });
  if (found != bases_.end()) return static_cast<uint32_t>(found - bases_.begin());
  if (bases_.size() > kMostStores) {
    return absl::InvalidArgumentError(
        absl::StrCat("names an object at ", object.root, ", besides ", kMostStores,
                     " other buckets and servers; copy them together"));
  }
  bases_.push_back({object.root, std::move(store), ""});
  return static_cast<uint32_t>(bases_.size() - 1);
}

absl::StatusOr<int32_t> ManifestSamples::TakeClass(const std::string& label, bool is_folder) {
  if (label.empty()) {
    return absl::InvalidArgumentError("has an empty label; write a class's number or its name");
  }
  const bool whole = !is_folder && IsWhole(label);
  if (rows_.empty()) classes_are_names_ = !whole;
  classes_are_folders_ = is_folder;
  if (!classes_are_names_) {
    int64_t number = 0;
    if (!whole) {
      return absl::InvalidArgumentError(absl::StrCat(
          "has the label \"", base::ToUtf8(label, kMostShownLabel),
          "\", which is no whole number as the first one is; write either numbers or names"));
    }
    const absl::StatusOr<int32_t> found = absl::SimpleAtoi(label, &number)
                                              ? source::ClassOf(number, rule_)
                                              : absl::DataLossError("it has too many digits");
    if (!found.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has the label ", label.substr(0, kMostShownLabel), ", which is no class: ",
                       found.status().message(), "; classes are numbers from 0 on, or names"));
    }
    if (*found >= static_cast<int32_t>(kMostClasses)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has the label ", label.substr(0, kMostShownLabel), ", and more than ",
                       kMostClasses, " classes are none; name the label's column or attribute in ",
                       "dataset.fields.label.field"));
    }
    highest_class_ = std::max(highest_class_, *found);
    return *found;
  }
  const auto [found, is_new] = class_ids_.emplace(label, static_cast<int32_t>(class_names_.size()));
  if (is_new) class_names_.push_back(label);
  if (class_names_.size() > kMostClasses) {
    return absl::InvalidArgumentError(
        absl::StrCat("has one more than ", kMostClasses,
                     " names of classes; name the label's column in dataset.fields.label.field"));
  }
  return found->second;
}

absl::Status ManifestSamples::Finish() {
  class_ids_ = {};
  if (!classes_are_names_) return absl::OkStatus();
  if (rule_.offset != 0) {
    return absl::InvalidArgumentError(
        "classes are names here, and dataset.fields.label.offset is added to numbers; remove it");
  }
  if (classes_are_folders_ && AreSplits(class_names_)) {
    return absl::InvalidArgumentError(
        "the classes are splits: train and others; write a manifest for each and name the other "
        "one in dataset.validation.uri");
  }
  std::vector<int32_t> order(class_names_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [this](int32_t a, int32_t b) { return class_names_[a] < class_names_[b]; });
  std::vector<int32_t> sorted(order.size());  // where each one went
  std::vector<std::string> names;
  for (const int32_t id : order) {
    sorted[id] = static_cast<int32_t>(names.size());
    names.push_back(std::move(class_names_[id]));
  }
  class_names_ = std::move(names);
  for (Row& row : rows_) row.label = sorted[row.label];
  return absl::OkStatus();
}

std::string_view ManifestSamples::PathOf(int64_t id) const {
  const uint64_t begin = id == 0 ? 0 : rows_[id - 1].end;
  return std::string_view(paths_).substr(begin, rows_[id].end - begin);
}

std::string ManifestSamples::NameOf(int64_t id) const {
  return bases_[rows_[id].base].folder + std::string(PathOf(id));
}

std::string_view ManifestSamples::MaskPathOf(int64_t id) const {
  const uint64_t begin = id == 0 ? 0 : masks_[id - 1].end;
  return std::string_view(mask_paths_).substr(begin, masks_[id].end - begin);
}

std::string ManifestSamples::NameOfMask(int64_t id) const {
  const std::string_view path = MaskPathOf(id);
  return path.empty() ? "" : bases_[masks_[id].base].folder + std::string(path);
}

std::vector<uint8_t> ManifestSamples::NumbersOf(int64_t id) const {
  const size_t bytes = numbers_.size() / rows_.size();
  const auto first = numbers_.begin() + static_cast<std::ptrdiff_t>(id * bytes);
  return {first, first + static_cast<std::ptrdiff_t>(bytes)};
}

void ManifestSamples::AddPlace(uint32_t number, std::string_view path, Fingerprint* print) const {
  const Base& own = bases_.front();
  const Base& base = bases_[number];
  // Where its own folder lies differs from copy to copy.
  const bool is_own = base.root == own.root && base.folder == own.folder;
  print->Add(is_own ? "" : base.root);
  print->Add(path);
}

void ManifestSamples::AddTo(Fingerprint* print) const {
  for (int64_t id = 0; id < size(); ++id) {
    AddPlace(rows_[id].base, PathOf(id), print);
    print->Add(static_cast<uint64_t>(int64_t{rows_[id].label}));
    if (rule_.masks()) AddPlace(masks_[id].base, MaskPathOf(id), print);
  }
  for (const std::string& name : class_names_) print->Add(name);
  if (!numbers_.empty()) {
    const job::FieldSpec field = job::FieldsOf(rule_.kind)->front();
    print->Add(job::FieldHeading(field.name, job::NameOf(field.type), field.shape));
    print->Add(uint64_t{base::Crc32c(numbers_.data(), numbers_.size())});
  }
}

}  // namespace hetero::source
