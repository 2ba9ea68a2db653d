#include "runtime/source/picture_numbers.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/file.h"
#include "runtime/source/json_numbers.h"
#include "runtime/source/read_object.h"

namespace hetero::source {
namespace {

constexpr int64_t kMaxMetadataBytes = int64_t{1} << 30;
constexpr char kUsualName[] = "label";

class Reader {
 public:
  Reader(const api::Label& label, const std::vector<std::string>& pictures)
      : label_(label),
        field_(label.field.empty() ? kUsualName : label.field),
        bytes_(static_cast<size_t>(job::FieldsOf(label)->front().bytes())),
        pictures_(pictures),
        seen_(pictures.size()) {
    for (size_t i = 0; i < pictures.size(); ++i) places_[pictures[i]] = i;
    numbers_.resize(bytes_ * pictures.size());
  }

  absl::Status Line(std::string_view text) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) return absl::InvalidArgumentError("is no JSON object");
    const auto name = line.find("file_name");
    if (name == line.end() || !name->is_string()) {
      return absl::InvalidArgumentError("has no file_name");
    }
    const auto& path = name->get_ref<const std::string&>();
    const auto place = places_.find(path);
    if (place == places_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("names ", path, ", which is no picture of this folder"));
    }
    if (seen_[place->second]) {
      return absl::InvalidArgumentError(absl::StrCat("names ", path, " once more"));
    }
    seen_[place->second] = true;
    const auto value = line.find(field_);
    if (value == line.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no ", field_, "; dataset.label.field names what is there"));
    }
    const absl::Status status =
        FlattenNumbers(*value, label_, numbers_.data() + place->second * bytes_);
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat(field_, " ", status.message(), ", as dataset.label says"));
  }

  absl::StatusOr<std::vector<uint8_t>> All() && {
    const auto missing = std::find(seen_.begin(), seen_.end(), false);
    if (missing == seen_.end()) return std::move(numbers_);
    return absl::InvalidArgumentError(absl::StrCat(
        "has no line for ", pictures_[static_cast<size_t>(missing - seen_.begin())], ", one of ",
        std::count(seen_.begin(), seen_.end(), false), " pictures without a label"));
  }

 private:
  const api::Label& label_;
  const std::string field_;
  const size_t bytes_;  // of one sample
  const std::vector<std::string>& pictures_;
  std::unordered_map<std::string_view, size_t> places_;
  std::vector<bool> seen_;
  std::vector<uint8_t> numbers_;
};

absl::Status ReadMetadata(const std::string& path, const storage::Store* store,
                          std::vector<uint8_t>* bytes) {
  if (store == nullptr) return ReadFile(path, kMaxMetadataBytes, bytes);
  HETERO_ASSIGN_OR_RETURN(const storage::Object object, store->Head(kPictureNumbersFile));
  return ReadObject(*store, object, kMaxMetadataBytes, bytes);
}

absl::StatusOr<bool> Exists(const std::string& path, const storage::Store* store) {
  std::error_code ignored;
  if (store == nullptr) return std::filesystem::exists(path, ignored);
  const absl::Status status = store->Head(kPictureNumbersFile).status();
  if (absl::IsNotFound(status)) return false;
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<PictureNumbers> Read(const std::string& path, const storage::Store* store,
                                    const api::Label& label,
                                    const std::vector<std::string>& pictures) {
  std::vector<uint8_t> bytes;
  HETERO_RETURN_IF_ERROR(ReadMetadata(path, store, &bytes));
  Reader reader(label, pictures);
  std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (int64_t number = 1; !left.empty(); ++number) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (const absl::Status status = reader.Line(line); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": line ", number, ": ", status.message()));
    }
  }
  PictureNumbers read;
  read.checksum = base::Crc32c(bytes.data(), bytes.size());
  absl::StatusOr<std::vector<uint8_t>> numbers = std::move(reader).All();
  if (!numbers.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", numbers.status().message()));
  }
  read.numbers = *std::move(numbers);
  return read;
}

}  // namespace

absl::StatusOr<PictureNumbers> ReadPictureNumbers(const std::string& root,
                                                  const storage::Store* store,
                                                  const api::Label& label,
                                                  const std::vector<std::string>& pictures) {
  const std::string path = absl::StrCat(root, "/", kPictureNumbersFile);
  HETERO_ASSIGN_OR_RETURN(const bool exists, Exists(path, store));
  if (!exists) {
    return absl::NotFoundError(absl::StrCat(
        path, ": not there; labels that are no classes stand in it, on each line {\"file_name\": ",
        "\"a.jpg\", \"", label.field.empty() ? kUsualName : label.field, "\": ...}"));
  }
  try {
    return Read(path, store, label, pictures);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": there is no memory for all labels; give each process more"));
  }
}

}  // namespace hetero::source
