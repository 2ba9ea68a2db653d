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
    HETERO_ASSIGN_OR_RETURN(const PictureListing listing, store_ == nullptr
                                                              ? ListPictures(root_, by_class)
                                                              : ListPictures(pictures, by_class));
    ignored_ = listing.ignored;
    for (const PictureClass& one : listing.classes) {
      if (by_class) class_names_.push_back(one.name);
      Append(one.pictures);
    }
    return label.numbers() ? ReadNumbers(label) : absl::OkStatus();
  }

  void Declare(std::optional<api::ImageShape> image) { image_ = image.value_or(api::ImageShape{}); }
  void DeclareClasses(std::optional<int32_t> classes) { declared_classes_ = classes.value_or(0); }
  int64_t ignored() const { return ignored_; }

  int64_t size() const override { return static_cast<int64_t>(ends_.size()); }
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

  std::string Path(int64_t id) const {
    const size_t begin = id == 0 ? 0 : ends_[id - 1].version;
    return names_.substr(begin, ends_[id].path - begin);
  }

  storage::Object ObjectOf(int64_t id) const {
    const Ends& ends = ends_[id];
    return {Path(id), sizes_[id], names_.substr(ends.path, ends.version - ends.path)};
  }

  void Append(const std::vector<PictureFile>& pictures) {
    for (const PictureFile& picture : pictures) {
      Ends ends;
      if (!picture.folder.empty()) absl::StrAppend(&names_, picture.folder, "/");
      names_ += picture.name;
      ends.path = names_.size();
      names_ += picture.version;
      ends.version = names_.size();
      ends_.push_back(ends);
      if (store_ != nullptr) sizes_.push_back(static_cast<int64_t>(picture.size));
      print_.Add(picture.folder);
      print_.Add(picture.name);
      print_.Add(picture.size);
    }
    class_ends_.push_back(size());
  }

  int32_t Label(int64_t id) const {
    return static_cast<int32_t>(std::upper_bound(class_ends_.begin(), class_ends_.end(), id) -
                                class_ends_.begin());
  }

  // In names_.
  struct Ends {
    size_t path = 0;
    size_t version = 0;  // which stands behind the path
  };

  const std::string root_;
  const std::shared_ptr<const storage::Store> store_;  // null: of files
  api::ImageShape image_;
  int64_t ignored_ = 0;
  std::vector<std::string> class_names_;
  int32_t declared_classes_ = 0;     // where there are no names
  std::vector<int64_t> class_ends_;  // one past the last id of each class
  // All relative paths in one block, each with its object's version behind it: a million pictures
  // then cost little more than their names.
  std::string names_;
  std::vector<Ends> ends_;
  std::vector<int64_t> sizes_;    // of objects, in bytes
  std::vector<uint8_t> numbers_;  // of all samples' labels
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
