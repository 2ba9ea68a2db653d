#include "runtime/source/idx_numbers.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hetero::source {

struct IdxNumbers::Type {
  const char* name;
  uint8_t code;  // the third byte of the magic number
  size_t bytes;
  bool is_signed;
  api::LabelType label;
};

const IdxNumbers::Type IdxNumbers::kTypes[] = {{"ubyte", 0x08, 1, false, api::LabelType::kInt64},
                                               {"byte", 0x09, 1, true, api::LabelType::kInt64},
                                               {"short", 0x0b, 2, true, api::LabelType::kInt64},
                                               {"int", 0x0c, 4, true, api::LabelType::kInt64},
                                               {"float", 0x0d, 4, false, api::LabelType::kFloat32}};

namespace {

constexpr char kUsualField[] = "labels";

std::string ShapeText(const std::vector<uint32_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

absl::StatusOr<IdxNumbers> IdxNumbers::Open(const IdxFolder& folder, job::Split split,
                                            const api::Label& label) {
  const std::string noun = label.field.empty() ? kUsualField : label.field;
  const size_t dimensions = 1 + label.shape.size();
  IdxNumbers numbers;
  std::vector<std::string> looked_for;
  for (const Type& type : kTypes) {
    if (type.label != label.type) continue;
    const std::array<std::string, 4> names = IdxSpellings(split, noun, dimensions, type.name);
    looked_for.push_back(names[0]);
    HETERO_ASSIGN_OR_RETURN(numbers.file_, LoadIdx(folder, names));
    numbers.type_ = &type;
    if (!numbers.file_.path.empty()) break;
  }
  const IdxFile& file = numbers.file_;
  if (file.path.empty()) {
    return absl::NotFoundError(absl::StrCat("no IDX file of dataset.label in ", folder.name,
                                            ": looked for ", absl::StrJoin(looked_for, ", "),
                                            ", each with .gz and with a dot before idx, too"));
  }
  const Type& type = *numbers.type_;
  numbers.header_ = 4 * (1 + dimensions);
  if (file.bytes.size() < numbers.header_) {
    return absl::DataLossError(absl::StrCat(file.path, ": ", file.bytes.size(),
                                            " bytes, but its header alone has ", numbers.header_));
  }
  const uint32_t magic = uint32_t{type.code} << 8 | static_cast<uint32_t>(dimensions);
  if (file.Word(0) != magic) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, ": byte 0: magic 0x", absl::Hex(file.Word(0), absl::kZeroPad8), ", expected 0x",
        absl::Hex(magic, absl::kZeroPad8), " of a file of this name"));
  }
  std::vector<uint32_t> found, wanted;
  for (size_t i = 0; i < label.shape.size(); ++i) {
    wanted.push_back(static_cast<uint32_t>(label.shape[i]));
    found.push_back(file.Word(2 + i));
    numbers.of_sample_ *= label.shape[i];
  }
  if (found != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, ": holds ", ShapeText(found),
                     " numbers a sample, where dataset.label.shape is ", ShapeText(wanted)));
  }
  const uint64_t bytes = uint64_t{file.Word(1)} * static_cast<uint64_t>(numbers.of_sample_) *
                         static_cast<uint64_t>(type.bytes);
  HETERO_RETURN_IF_ERROR(CheckIdxBody(file, noun, numbers.header_, bytes));
  return numbers;
}

void IdxNumbers::Read(int64_t id, std::vector<uint8_t>* numbers) const {
  const Type& type = *type_;
  const size_t wide = type.label == api::LabelType::kInt64 ? 8 : 4;
  const auto count = static_cast<size_t>(of_sample_);
  numbers->resize(count * wide);
  const uint8_t* in = file_.bytes.data() + header_ + static_cast<size_t>(id) * count * type.bytes;
  uint8_t* out = numbers->data();
  for (size_t i = 0; i < count; ++i, in += type.bytes, out += wide) {
    const bool negative = type.is_signed && (in[0] & 0x80) != 0;
    for (size_t byte = 0; byte < wide; ++byte) {
      out[byte] = byte < type.bytes ? in[type.bytes - 1 - byte] : (negative ? 0xff : 0);
    }
  }
}

}  // namespace hetero::source
