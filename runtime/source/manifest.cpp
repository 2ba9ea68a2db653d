#include "runtime/source/manifest.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/source/declared.h"
#include "runtime/source/manifest_kind.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/shard_source.h"
#include "runtime/source/sharded_dataset.h"
#include "runtime/source/uri.h"

namespace hetero::source {
namespace {

constexpr int64_t kMostManifestBytes = int64_t{1} << 30;
constexpr UsualNames kUsualAttributes = {"source-ref", "", ""};
constexpr UsualNames kUsualColumnsOfTables = {"path;image;file_name;filename;file;source-ref",
                                              "label;class", "label"};

class Manifest : public Dataset {
 public:
  // `where` is the manifest's URI; a sample's `place` there is a "line" or an "element".
  Manifest(std::string where, const char* place, SampleRule rule)
      : where_(std::move(where)), place_(place), rule_(std::move(rule)) {}

  const SampleRule& rule() const { return rule_; }

  absl::Status Fill(std::unique_ptr<ManifestSamples> samples, const api::DatasetSource& declared) {
    samples_ = std::move(samples);
    if (samples_->size() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where_, ": line 1: lists no pictures; add some, or correct dataset.uri"));
    }
    if (const absl::Status status = samples_->Finish(); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(where_, ": ", status.message()));
    }
    HETERO_RETURN_IF_ERROR(CheckSamples(where_, declared, size()));
    HETERO_RETURN_IF_ERROR(CountClasses(declared));
    image_ = declared.image.value_or(api::ImageShape{});
    seen_ = std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(size()));
    if (rule_.masks()) {
      seen_masks_ = std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(size()));
    }
    Fingerprint print;
    print.Add("manifest");
    samples_->AddTo(&print);
    fingerprint_ = print.ToHex();
    log::Info("manifest opened", {{"uri", where_}, {"samples", size()}, {"classes", classes_}});
    return absl::OkStatus();
  }

  int64_t size() const override { return samples_->size(); }
  int32_t classes() const override { return classes_; }
  api::ImageShape image() const override { return image_; }
  std::string fingerprint() const override { return fingerprint_; }
  bool is_remote() const override { return samples_->any_is_remote(); }
  std::string ClassName(int32_t label) const override {
    const std::vector<std::string>& names = samples_->class_names();
    return names.empty() ? std::to_string(label) : names[label];
  }
  std::string Describe(int64_t id) const override {
    if (id < 0 || id >= size()) return absl::StrCat(where_, ": sample ", id);
    return absl::StrCat(samples_->StoreOf(id).uri(), "/", samples_->NameOf(id));
  }

  absl::Status Read(int64_t id, RawSample* sample) const override {
    if (id < 0 || id >= size()) {
      return absl::OutOfRangeError(absl::StrCat(Describe(id), ": ids end at ", size() - 1));
    }
    const absl::StatusOr<storage::Object> object =
        samples_->StoreOf(id).ReadAll(samples_->NameOf(id), kMaxPictureBytes, &sample->bytes);
    if (!object.ok()) {
      // A picture that is too large is a bad one, wherever it is.
      return absl::Status(absl::IsOutOfRange(object.status()) ? absl::StatusCode::kDataLoss
                                                              : object.status().code(),
                          absl::StrCat(object.status().message(), Named(id)));
    }
    HETERO_RETURN_IF_ERROR(CheckUnchanged(Describe(id), *object, &seen_[id]));
    HETERO_RETURN_IF_ERROR(FindEncoding(Describe(id), sample->bytes, &sample->encoding));
    sample->shape = {};
    sample->label = rule_.classes() ? samples_->ClassOf(id) : 0;
    sample->fields = samples_->NumbersOf(id);
    if (rule_.masks()) HETERO_RETURN_IF_ERROR(ReadMask(id, &sample->mask));
    if (!rule_.classes()) return absl::OkStatus();
    const absl::Status status = CheckLabel(sample->label, classes_);
    if (status.ok()) return status;
    return absl::DataLossError(absl::StrCat(Describe(id), ": ", status.message(), Named(id)));
  }

 private:
  absl::Status CountClasses(const api::DatasetSource& declared) {
    if (!samples_->class_names().empty()) {
      classes_ = static_cast<int32_t>(samples_->class_names().size());
      return CheckClasses(where_, declared, classes_);
    }
    classes_ = declared.classes.value_or(rule_.classes() ? samples_->highest_class() + 1 : 0);
    if (!rule_.classes() || classes_ > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        where_, ": no sample has a class from 0 on; correct dataset.fields.label.offset"));
  }

  // A mask that is not there is as bad as one that is damaged.
  absl::Status ReadMask(int64_t id, std::vector<uint8_t>* mask) const {
    const std::string name = samples_->NameOfMask(id);
    if (name.empty()) {
      return absl::DataLossError(absl::StrCat(Describe(id), ": has no mask", Named(id)));
    }
    const storage::Store& store = samples_->StoreOfMask(id);
    const absl::StatusOr<storage::Object> object = store.ReadAll(name, kMaxPictureBytes, mask);
    if (object.ok()) {
      return CheckUnchanged(absl::StrCat(store.uri(), "/", name), *object, &seen_masks_[id]);
    }
    const bool is_bad = absl::IsOutOfRange(object.status()) || absl::IsNotFound(object.status());
    return absl::Status(
        is_bad ? absl::StatusCode::kDataLoss : object.status().code(),
        absl::StrCat(Describe(id), ": its mask: ", object.status().message(), Named(id)));
  }

  // "; line 17 of s3://bucket/a.csv names it"
  std::string Named(int64_t id) const {
    return absl::StrCat("; ", place_, " ", samples_->LineOf(id), " of ", where_, " names it");
  }

  // Every read is of what the first one found.
  static absl::Status CheckUnchanged(const std::string& what, const storage::Object& object,
                                     std::atomic<uint64_t>* known) {
    Fingerprint print;
    print.Add(static_cast<uint64_t>(object.size));
    print.Add(object.version);
    const uint64_t found = print.value() | 1;  // 0: not read yet
    uint64_t seen = 0;
    if (known->compare_exchange_strong(seen, found) || seen == found) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot read ", what, ": it was changed since it was first read: it has ", object.size,
        " bytes now, version ", object.version, "; put the object back or start a new job"));
  }

  const std::string where_;
  const char* const place_;
  const SampleRule rule_;
  std::unique_ptr<ManifestSamples> samples_;
  int32_t classes_ = 0;
  api::ImageShape image_;
  std::string fingerprint_;
  std::unique_ptr<std::atomic<uint64_t>[]> seen_;  // of each sample, which object it is
  std::unique_ptr<std::atomic<uint64_t>[]> seen_masks_;
};

struct Opened {
  storage::ObjectUri uri;
  std::shared_ptr<const storage::Store> store;
  storage::Object object;
};

absl::StatusOr<Opened> FindManifest(const std::string& uri, const StoreOpener& open) {
  Opened found;
  HETERO_ASSIGN_OR_RETURN(found.uri, storage::ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(found.store, open(found.uri));
  HETERO_ASSIGN_OR_RETURN(found.object, found.store->Head(found.uri.name));
  return found;
}

absl::StatusOr<std::unique_ptr<Dataset>> Parse(const Opened& found, const StoreOpener& open,
                                               const api::DatasetSource& source,
                                               const api::Label& label) {
  ByteStream text(*found.store, found.object);
  HETERO_ASSIGN_OR_RETURN(const ManifestKind kind, FindKind(text, found.uri.name));
  const bool named = source.fields != api::SampleFields() || !label.field.empty();
  if (kind.way == ManifestKind::kList && named) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.where(), ": byte 0: a list of paths has no fields with names; remove dataset.fields"));
  }
  auto dataset = std::make_unique<Manifest>(
      text.where(), kind.way == ManifestKind::kList ? "element" : "line",
      RuleOf(source, label,
             kind.way == ManifestKind::kTable ? kUsualColumnsOfTables : kUsualAttributes));
  const SampleRule& rule = dataset->rule();
  auto samples = std::make_unique<ManifestSamples>(found.uri, found.store, open, rule);
  const ManifestSink add = [&samples](const ManifestEntry& entry) { return samples->Add(entry); };
  switch (kind.way) {
    case ManifestKind::kList:
      HETERO_RETURN_IF_ERROR(ReadManifestList(text, rule, add));
      break;
    case ManifestKind::kLines:
      HETERO_RETURN_IF_ERROR(ReadManifestLines(text, rule, add));
      break;
    case ManifestKind::kTable:
      HETERO_RETURN_IF_ERROR(ReadManifestCsv(text, kind.separator, rule, named, add));
      break;
  }
  HETERO_RETURN_IF_ERROR(dataset->Fill(std::move(samples), source));
  return dataset;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenManifest(const std::string& uri,
                                                      const StoreOpener& open,
                                                      const api::DatasetSource& source,
                                                      const api::Label& label) {
  const absl::StatusOr<Opened> found = FindManifest(uri, open);
  if (!found.ok()) {
    return absl::Status(found.status().code(),
                        absl::StrCat("dataset.uri: ", found.status().message(),
                                     "; with dataset.format Manifest it names the object that "
                                     "lists the pictures"));
  }
  if (found->object.size > kMostManifestBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(found->store->uri(), "/", found->object.name, ": ", found->object.size,
                     " bytes; manifests of more than ", kMostManifestBytes,
                     " bytes are not read. Put the pictures into shards"));
  }
  try {
    return Parse(*found, open, source, label);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(found->store->uri(), "/", found->object.name,
                     ": there is no memory for all samples; give each process more"));
  }
}

StoreOpener OpenerOf(storage::Stores stores) {
  // Of a root and an entry of spec.storage; copies of the opener share it.
  using Opened = std::map<std::pair<std::string, int>, std::shared_ptr<const storage::Store>>;
  return [stores = std::move(stores),
          opened = std::make_shared<Opened>()](const storage::ObjectUri& object)
             -> absl::StatusOr<std::shared_ptr<const storage::Store>> {
    std::shared_ptr<const storage::Store>& store = (*opened)[{object.root, stores.EntryOf(object)}];
    if (store == nullptr) {
      HETERO_ASSIGN_OR_RETURN(store, stores.OpenRootOf(object));
    }
    return store;
  };
}

absl::StatusOr<bool> HasManifest(const std::string& uri, const StoreOpener& open,
                                 const api::DatasetSource& source) {
  if (IsWebUri(uri)) return !NamesFiles(uri);
  // A bucket is asked about one object more only where its name says what it may be.
  if (!absl::StartsWith(uri, "file://") && !IsManifestName(uri)) return false;
  const absl::StatusOr<Opened> found = FindManifest(uri, open);
  // Of a folder nobody asks whether its name has a ".." in it.
  if (absl::IsNotFound(found.status()) || absl::IsInvalidArgument(found.status())) return false;
  HETERO_RETURN_IF_ERROR(found.status());
  if (found->object.size > kMostManifestBytes) return false;
  ByteStream text(*found->store, found->object);
  return BeginsManifest(text, found->uri.name, source.fields);
}

}  // namespace hetero::source
