#include "runtime/source/image_folder.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/declared.h"
#include "runtime/source/file.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/picture_listing.h"
#include "runtime/source/picture_numbers.h"
#include "runtime/source/read_object.h"

namespace hetero::source {
namespace {

class ImageFolder : public Dataset {
 public:
  // Of a folder, or of what `store` holds where there is one; `root` is its path or its URI.
  ImageFolder(std::string root, std::shared_ptr<const storage::Store> store)
      : root_(std::move(root)), store_(std::move(store)) {}

  absl::Status Scan(const ShardSource& pictures, const api::Label& label) {
    const bool by_class = label.type == api::LabelType::kClass;
    print_.Add(by_class ? "image folder" : "pictures");
    HETERO_ASSIGN_OR_RETURN(PictureListing listing, store_ == nullptr
                                                        ? ListPictures(root_, by_class)
                                                        : ListPictures(pictures, by_class));
    ignored_ = listing.ignored;
    listing.AddTo(&print_);
    for (PictureClass& one : listing.classes) {
      if (by_class) class_names_.push_back(one.name);
      for (PictureFolder& folder : one.folders) {
        first_ids_.push_back(size_);
        size_ += static_cast<int64_t>(folder.names.size());
        folders_.push_back(std::move(folder));
      }
      one.folders = {};
      class_ends_.push_back(size_);
    }
    return label.numbers() ? ReadNumbers(label) : absl::OkStatus();
  }

  void Declare(std::optional<api::ImageShape> image) { image_ = image.value_or(api::ImageShape{}); }
  void DeclareClasses(std::optional<int32_t> classes) { declared_classes_ = classes.value_or(0); }
  int64_t ignored() const { return ignored_; }

  int64_t size() const override { return size_; }
  int32_t classes() const override {
    return class_names_.empty() ? declared_classes_ : static_cast<int32_t>(class_names_.size());
  }
  api::ImageShape image() const override { return image_; }
  std::string ClassName(int32_t label) const override { return class_names_[label]; }
  std::string fingerprint() const override { return print_.ToHex(); }
  std::string versions() const override {
    if (store_ == nullptr || !store_->is_remote()) return "";
    Fingerprint print;
    for (int64_t id = 0; id < size(); ++id) print.Add(ObjectOf(id));
    return print.ToHex();
  }
  bool is_remote() const override { return store_ != nullptr && store_->is_remote(); }

  absl::Status Read(int64_t id, RawSample* sample) const override {
    if (id < 0 || id >= size()) {
      return absl::OutOfRangeError(
          absl::StrCat(root_, ": sample ", id, ": ids end at ", size() - 1));
    }
    const std::string path = Describe(id);
    HETERO_RETURN_IF_ERROR(
        store_ == nullptr ? ReadFile(path, kMaxPictureBytes, &sample->bytes)
                          : ReadObject(*store_, ObjectOf(id), kMaxPictureBytes, &sample->bytes));
    HETERO_RETURN_IF_ERROR(FindEncoding(path, sample->bytes, &sample->encoding));
    sample->shape = {};
    sample->label = class_names_.empty() ? 0 : Label(id);
    const size_t numbers = numbers_.size() / static_cast<size_t>(size());
    const uint8_t* first = numbers_.data() + static_cast<size_t>(id) * numbers;
    sample->fields.assign(first, first + numbers);
    return absl::OkStatus();
  }

  std::string Describe(int64_t id) const override {
    if (id < 0 || id >= size()) return absl::StrCat(root_, ": sample ", id);
    return absl::StrCat(root_, "/", Path(id));
  }

 private:
  absl::Status ReadNumbers(const api::Label& label) {
    std::vector<std::string> paths;
    for (int64_t id = 0; id < size(); ++id) paths.push_back(Path(id));
    HETERO_ASSIGN_OR_RETURN(PictureNumbers numbers,
                            ReadPictureNumbers(root_, store_.get(), label, paths));
    numbers_ = std::move(numbers.numbers);
    const job::FieldSpec field = job::FieldsOf(label)->front();
    print_.Add(job::FieldHeading(field.name, job::NameOf(field.type), field.shape));
    print_.Add(uint64_t{numbers.checksum});
    return absl::OkStatus();
  }

  struct Place {
    const PictureFolder& folder;
    size_t index;  // in it
  };
  Place PlaceOf(int64_t id) const {
    const auto after = std::upper_bound(first_ids_.begin(), first_ids_.end(), id);
    const auto folder = static_cast<size_t>(after - first_ids_.begin()) - 1;
    return {folders_[folder], static_cast<size_t>(id - first_ids_[folder])};
  }

  std::string Path(int64_t id) const {
    const Place place = PlaceOf(id);
    return place.folder.PathOf(place.index);
  }

  storage::Object ObjectOf(int64_t id) const {
    const auto& [folder, i] = PlaceOf(id);
    return {folder.PathOf(i), static_cast<int64_t>(folder.sizes[i]),
            std::string(folder.versions[i])};
  }

  int32_t Label(int64_t id) const {
    return static_cast<int32_t>(std::upper_bound(class_ends_.begin(), class_ends_.end(), id) -
                                class_ends_.begin());
  }

  const std::string root_;
  const std::shared_ptr<const storage::Store> store_;  // null: of files
  api::ImageShape image_;
  int64_t ignored_ = 0;
  std::vector<std::string> class_names_;
  int32_t declared_classes_ = 0;     // where there are no names
  std::vector<int64_t> class_ends_;  // one past the last id of each class
  int64_t size_ = 0;
  std::vector<PictureFolder> folders_;  // of all classes, in their order
  std::vector<int64_t> first_ids_;      // of each folder
  std::vector<uint8_t> numbers_;        // of all samples' labels
  Fingerprint print_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const std::string& root,
                                                         const ShardSource& pictures,
                                                         const api::DatasetSource& source,
                                                         const api::Label& label) {
  auto dataset = std::make_unique<ImageFolder>(root, pictures.store);
  HETERO_RETURN_IF_ERROR(dataset->Scan(pictures, label));
  if (label.type == api::LabelType::kClass) {
    HETERO_RETURN_IF_ERROR(CheckClasses(root, source, dataset->classes()));
  } else {
    dataset->DeclareClasses(source.classes);
  }
  HETERO_RETURN_IF_ERROR(CheckSamples(root, source, dataset->size()));
  dataset->Declare(source.image);
  log::Info("image folder opened", {{"path", root},
                                    {"classes", dataset->classes()},
                                    {"samples", dataset->size()},
                                    {"ignored", dataset->ignored()}});
  return dataset;
}

}  // namespace hetero::source
