#include "runtime/source/web_dataset_sample.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/json_numbers.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/storage/store.h"

namespace hetero::source {
namespace {

// Of a field with labels, whatever else it holds.
constexpr size_t kMaxShownText = 32;
constexpr size_t kMostFields = 1000;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// As the beginning of a text can be shown: in quotes, without what is not printable.
std::string Shown(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kMaxShownText)) {
    shown += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  }
  return absl::StrCat("\"", shown, text.size() > kMaxShownText ? "..." : "", "\"");
}

// What `pointer` names in the text, or all of it; it lies in `*whole`. A copy would recurse as deep
// as a stranger's text is nested.
absl::StatusOr<const nlohmann::json*> ParseJson(std::string_view text, const std::string& pointer,
                                                nlohmann::json* whole) {
  *whole = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (whole->is_discarded()) {
    return absl::DataLossError(absl::StrCat("is no JSON: ", Shown(text)));
  }
  if (pointer.empty()) return whole;
  try {
    const nlohmann::json::json_pointer path(pointer);
    if (whole->contains(path)) return &whole->at(path);
  } catch (const nlohmann::json::exception&) {
    // A path that is none is in no object.
  }
  return absl::DataLossError(absl::StrCat("has no ", pointer.substr(1), ": ", Shown(text)));
}

absl::StatusOr<int64_t> ReadClass(std::string_view text, const LabelPath& path) {
  int64_t number = 0;
  if (path.pointer.empty()) {
    if (absl::SimpleAtoi(View(text), &number)) return number;
    return absl::DataLossError(absl::StrCat("is no number: ", Shown(text)));
  }
  nlohmann::json whole;
  HETERO_ASSIGN_OR_RETURN(const nlohmann::json* const value, ParseJson(text, path.pointer, &whole));
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() ||
                     value->get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
  if (fits) return value->get<int64_t>();
  return absl::DataLossError(
      absl::StrCat("has no whole number at ", path.pointer.substr(1), ": ", Shown(text)));
}

// The files of one sample, as if they were an archive.
class HeldMembers : public storage::Store {
 public:
  explicit HeldMembers(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  const std::string& uri() const override { return uri_; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view) const override {
    return absl::UnimplementedError("one object");
  }
  absl::StatusOr<storage::Object> Head(std::string_view) const override {
    return storage::Object{.name = "members", .size = static_cast<int64_t>(bytes_.size())};
  }
  absl::Status Read(const storage::Object&, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return absl::OkStatus();
  }

 private:
  const std::vector<uint8_t>& bytes_;
  const std::string uri_ = "the sample";
};

using Members = std::map<std::string, std::span<const uint8_t>>;  // by their fields

absl::StatusOr<Members> MembersOf(const std::vector<uint8_t>& bytes) {
  const HeldMembers store(bytes);
  const storage::Object object = *store.Head("");
  BlockReader reader(store, object);
  TarReader tar(reader);
  TarMember member;
  Members members;
  while (true) {
    const absl::StatusOr<bool> found = tar.Next(&member);
    if (!found.ok()) return absl::DataLossError(found.status().message());
    if (!*found) return members;
    FieldName name = FieldOf(member.name);
    if (name.sample.empty()) continue;
    members[std::move(name.field)] = std::span(bytes).subspan(static_cast<size_t>(member.offset),
                                                              static_cast<size_t>(member.size));
  }
}

absl::StatusOr<std::span<const uint8_t>> FindMember(const Members& members,
                                                    const std::vector<std::string>& names,
                                                    const char* part, const char* remedy) {
  for (const std::string& name : names) {
    if (const auto found = members.find(name); found != members.end()) return found->second;
  }
  const std::string there = absl::StrJoin(
      members, ", ", [](std::string* text, const auto& member) { *text += member.first; });
  return absl::DataLossError(absl::StrCat("has no ", part, " under ", absl::StrJoin(names, ", "),
                                          "; beside it are ", there, "; ", remedy));
}

}  // namespace

absl::Status UnpackMembers(const SampleRule& rule, std::vector<uint8_t>* bytes,
                           std::vector<uint8_t>* mask) {
  HETERO_ASSIGN_OR_RETURN(const Members members, MembersOf(*bytes));
  HETERO_ASSIGN_OR_RETURN(
      const std::span<const uint8_t> picture,
      FindMember(members, rule.image, "picture", "make the index again, if there is one"));
  HETERO_ASSIGN_OR_RETURN(
      const std::span<const uint8_t> found,
      FindMember(members, rule.mask, "mask", "name its field in dataset.fields.mask"));
  mask->assign(found.begin(), found.end());
  KeepOnly(picture, bytes);
  return absl::OkStatus();
}

FieldName FieldOf(std::string_view member) {
  if (member.starts_with("__") && member.ends_with("__")) return {};
  const size_t slash = member.rfind('/');
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = member.find('.', begin);
  if (dot == std::string_view::npos || dot == begin) return {};
  return {member.substr(0, dot), absl::AsciiStrToLower(View(member.substr(dot + 1)))};
}

LabelPath ParseLabelPath(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return {name, ""};
  return {name.substr(0, slash), name.substr(slash)};
}

absl::Status ReadLabelNumbers(std::string_view text, const std::string& name,
                              const SampleRule& rule, std::vector<uint8_t>* numbers) {
  nlohmann::json whole;
  const absl::StatusOr<const nlohmann::json*> value =
      ParseJson(text, ParseLabelPath(name).pointer, &whole);
  if (!value.ok()) return absl::DataLossError(absl::StrCat(name, " ", value.status().message()));
  numbers->resize(static_cast<size_t>(job::FieldsOf(rule.kind)->front().bytes()));
  const absl::Status status = FlattenNumbers(**value, rule.kind, numbers->data());
  if (status.ok()) return status;
  return absl::DataLossError(absl::StrCat(name, " ", status.message(), ", as dataset.label says"));
}

absl::Status SampleBuilder::Add(const TarMember& member, std::vector<SampleLocation>* samples) {
  FieldName name = FieldOf(member.name);
  if (name.sample.empty()) return absl::OkStatus();
  if (name.sample != name_) {
    HETERO_RETURN_IF_ERROR(Finish(samples));
    name_ = name.sample;
    begin_ = member.header;
  }
  if (parts_.size() == kMostFields) {
    return Error(
        absl::StrCat("has more than ", kMostFields, " files, again one at byte ", member.header),
        "what is before the first dot of a file's name is its sample's, so give files of "
        "several samples names without other dots");
  }
  if (Find(name.field) != nullptr) {
    return Error(
        absl::StrCat("has the field ", name.field, " twice, again at byte ", member.header),
        "every sample needs a name of its own");
  }
  parts_.push_back({std::move(name.field), member.header, member.offset, member.size});
  return absl::OkStatus();
}

absl::Status SampleBuilder::Finish(std::vector<SampleLocation>* samples) {
  if (parts_.empty()) return absl::OkStatus();
  const Part* picture = nullptr;
  for (const std::string& name : rule_.image) {
    picture = Find(name);
    if (picture != nullptr) break;
  }
  if (picture == nullptr) {
    return Error(
        absl::StrCat("has no picture under ", absl::StrJoin(rule_.image, ", "), "; has ", Fields()),
        "name its field in dataset.fields.image");
  }
  SampleLocation location;
  if (rule_.masks()) {
    location = WithMask(*picture);
  } else {
    location.offset = picture->offset;
    location.length = LengthOfLocation(picture->size);
  }
  if (!rule_.label.empty()) HETERO_RETURN_IF_ERROR(FindLabel(&location));
  samples->push_back(location);
  parts_.clear();
  return absl::OkStatus();
}

// A sample without a mask is a bad one when it is read.
SampleLocation SampleBuilder::WithMask(const Part& picture) const {
  const auto end_of = [](const Part& part) { return part.offset + PaddedInTar(part.size); };
  int64_t begin = picture.header, end = end_of(picture);
  for (const std::string& name : rule_.mask) {
    const Part* mask = Find(name);
    if (mask == nullptr) continue;
    begin = std::min(begin, mask->header);
    end = std::max(end, end_of(*mask));
    break;
  }
  SampleLocation location;
  location.offset = begin;
  location.length = LengthOfLocation(end - begin);
  return location;
}

absl::Status SampleBuilder::FindLabel(SampleLocation* location) {
  const Part* part = nullptr;
  const std::string* name = nullptr;
  for (size_t i = 0; part == nullptr && i < rule_.label.size(); ++i) {
    name = &rule_.label[i];
    part = Find(ParseLabelPath(*name).field);
  }
  constexpr char kRemedy[] = "name its field in dataset.fields.label.field, such as json/label";
  if (part == nullptr) {
    return Error(
        absl::StrCat("has no label under ", absl::StrJoin(rule_.label, ", "), "; has ", Fields()),
        kRemedy);
  }
  if (part->size == 0 || part->size > kMaxLabelBytes) {
    return Error(absl::StrCat("has ", part->size, " bytes in ", part->field), kRemedy);
  }
  HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                          archive_.At(part->offset, static_cast<size_t>(part->size), "a label"));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!rule_.classes()) {
    std::vector<uint8_t> numbers;
    const absl::Status read = ReadLabelNumbers(text, *name, rule_, &numbers);
    if (!read.ok()) return Error(std::string(read.message()), kRemedy);
    const int64_t distance = part->offset - location->offset;
    if (distance != static_cast<int32_t>(distance)) {
      return Error("has more than 2 GiB between picture and label", "put them side by side");
    }
    location->label = static_cast<int32_t>(distance);
    location->label_length = static_cast<uint32_t>(part->size);
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> found = ReadClass(text, ParseLabelPath(*name));
  if (!found.ok()) {
    return Error(absl::StrCat(part->field, " ", found.status().message()), kRemedy);
  }
  const absl::StatusOr<int32_t> label = ClassOf(*found, rule_);
  if (!label.ok()) return Error(std::string(label.status().message()), kRemedy);
  location->label = *label;
  return absl::OkStatus();
}

const SampleBuilder::Part* SampleBuilder::Find(std::string_view field) const {
  for (const Part& part : parts_) {
    if (part.field == field) return &part;
  }
  return nullptr;
}

absl::Status SampleBuilder::Error(std::string_view what, std::string_view remedy) const {
  return absl::InvalidArgumentError(absl::StrCat(archive_.where(), ": byte ", begin_, ": sample ",
                                                 name_, " ", View(what), "; ", View(remedy)));
}

std::string SampleBuilder::Fields() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.push_back(part.field);
  return absl::StrJoin(names, ", ");
}

}  // namespace hetero::source
