#include "runtime/source/image_folder.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/declared.h"
#include "runtime/source/file.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/picture_numbers.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

struct PictureFile {
  std::string folder;  // relative to the root
  std::string name;
  uint64_t size = 0;
};

absl::Status Failed(const fs::path& path, const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path.string(), ": cannot list"));
}

bool IsPictureName(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::EndsWith(lower, ".jpg") || absl::EndsWith(lower, ".jpeg") ||
         absl::EndsWith(lower, ".png");
}

// Of a folder's root.
bool IsHidden(const std::string& name) {
  return absl::StartsWith(name, ".") || name == "lost+found";
}

// Adds the pictures of root/relative and everything below it. A cycle of links ends with the
// system's error for too many links.
absl::Status Walk(const fs::path& root, const std::string& relative,
                  std::vector<PictureFile>* pictures, int64_t* ignored) {
  std::error_code error;
  fs::directory_iterator entry(root / relative, error);
  if (error) return Failed(root / relative, error);
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (relative.empty() && IsHidden(name)) {
      ++*ignored;
      continue;
    }
    const bool is_folder = entry->is_directory(error);
    if (error == std::errc::too_many_symbolic_link_levels) return Failed(entry->path(), error);
    if (is_folder) {
      const std::string below = relative.empty() ? name : absl::StrCat(relative, "/", name);
      HETERO_RETURN_IF_ERROR(Walk(root, below, pictures, ignored));
    } else if (!IsPictureName(name)) {
      ++*ignored;
    } else {
      const uint64_t size = entry->file_size(error);
      if (error) return Failed(entry->path(), error);
      pictures->push_back({relative, name, size});
    }
  }
  if (error) return Failed(root / relative, error);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ClassFolders(const fs::path& root, int64_t* ignored) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(root, error);
  if (error) return Failed(root, error);
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!IsHidden(name) && entry->is_directory(error)) {
      names.push_back(std::move(name));
    } else {
      ++*ignored;
    }
  }
  if (error) return Failed(root, error);
  std::sort(names.begin(), names.end());
  return names;
}

// A folder with train/ and val/ in it would open as a set with two classes, "train" and "val".
bool LooksLikeSplits(const std::vector<std::string>& names) {
  static constexpr std::string_view kSplits[] = {"test", "train", "val", "valid", "validation"};
  return std::find(names.begin(), names.end(), "train") != names.end() &&
         std::all_of(names.begin(), names.end(), [](const std::string& name) {
           return std::find(std::begin(kSplits), std::end(kSplits), name) != std::end(kSplits);
         });
}

absl::Status CheckClassFolders(const std::string& root, const std::vector<std::string>& names) {
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        root, ": no class folders; an ImageFolder has one sub-folder of pictures per class"));
  }
  if (LooksLikeSplits(names)) {
    return absl::InvalidArgumentError(
        absl::StrCat(root, ": holds splits, not classes; write dataset.uri file://", root,
                     "/train and give the other split under dataset.validation.uri"));
  }
  return absl::OkStatus();
}

class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(std::string root) : root_(std::move(root)) {}

  // Pictures that nothing sorts into classes.
  absl::Status ScanAll(const api::Label& label) {
    print_.Add("pictures");
    std::vector<PictureFile> pictures;
    HETERO_RETURN_IF_ERROR(Walk(root_, "", &pictures, &ignored_));
    if (pictures.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          root_, ": no .jpg, .jpeg or .png files; add pictures, or correct ", "dataset.uri"));
    }
    Append(std::move(pictures));
    if (!label.numbers()) return absl::OkStatus();
    std::vector<std::string> paths;
    for (int64_t id = 0; id < size(); ++id) paths.push_back(Path(id));
    HETERO_ASSIGN_OR_RETURN(PictureNumbers numbers, ReadPictureNumbers(root_, label, paths));
    numbers_ = std::move(numbers.numbers);
    const job::FieldSpec field = job::FieldsOf(label)->front();
    print_.Add(job::FieldHeading(field.name, job::NameOf(field.type), field.shape));
    print_.Add(uint64_t{numbers.checksum});
    return absl::OkStatus();
  }

  absl::Status Scan() {
    absl::StatusOr<std::vector<std::string>> names = ClassFolders(root_, &ignored_);
    if (!names.ok()) return names.status();
    HETERO_RETURN_IF_ERROR(CheckClassFolders(root_, *names));
    class_names_ = *std::move(names);
    print_.Add("image folder");
    for (const std::string& name : class_names_) {
      std::vector<PictureFile> pictures;
      HETERO_RETURN_IF_ERROR(Walk(root_, name, &pictures, &ignored_));
      if (pictures.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(root_, "/", name, ": class folder without .jpg, .jpeg or .png files; ",
                         "add pictures or remove the folder"));
      }
      Append(std::move(pictures));
    }
    return absl::OkStatus();
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

  absl::Status Read(int64_t id, RawSample* sample) const override {
    if (id < 0 || id >= size()) {
      return absl::OutOfRangeError(
          absl::StrCat(root_, ": sample ", id, ": ids end at ", size() - 1));
    }
    const std::string path = Describe(id);
    HETERO_RETURN_IF_ERROR(ReadFile(path, kMaxPictureBytes, &sample->bytes));
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
  std::string Path(int64_t id) const {
    const size_t begin = id == 0 ? 0 : ends_[id - 1];
    return names_.substr(begin, ends_[id] - begin);
  }

  void Append(std::vector<PictureFile> pictures) {
    std::sort(pictures.begin(), pictures.end(), [](const PictureFile& a, const PictureFile& b) {
      return std::tie(a.folder, a.name) < std::tie(b.folder, b.name);
    });
    for (const PictureFile& picture : pictures) {
      if (!picture.folder.empty()) absl::StrAppend(&names_, picture.folder, "/");
      names_ += picture.name;
      ends_.push_back(names_.size());
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

  std::string root_;
  api::ImageShape image_;
  int64_t ignored_ = 0;
  std::vector<std::string> class_names_;
  int32_t declared_classes_ = 0;     // where there are no names
  std::vector<int64_t> class_ends_;  // one past the last id of each class
  // All relative paths in one block: a million pictures then cost little more than their names.
  std::string names_;
  std::vector<size_t> ends_;      // end of each path in names_
  std::vector<uint8_t> numbers_;  // of all samples' labels
  Fingerprint print_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const std::string& folder,
                                                         const api::DatasetSource& source,
                                                         const api::Label& label) {
  auto dataset = std::make_unique<ImageFolder>(folder);
  if (label.type == api::LabelType::kClass) {
    HETERO_RETURN_IF_ERROR(dataset->Scan());
    HETERO_RETURN_IF_ERROR(CheckClasses(folder, source, dataset->classes()));
  } else {
    HETERO_RETURN_IF_ERROR(dataset->ScanAll(label));
    dataset->DeclareClasses(source.classes);
  }
  HETERO_RETURN_IF_ERROR(CheckSamples(folder, source, dataset->size()));
  dataset->Declare(source.image);
  log::Info("image folder opened", {{"path", folder},
                                    {"classes", dataset->classes()},
                                    {"samples", dataset->size()},
                                    {"ignored", dataset->ignored()}});
  return dataset;
}

}  // namespace hetero::source
