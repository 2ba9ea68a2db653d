#include "runtime/source/picture_numbers.h"

#include "runtime/job/field_set.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_folder.h"

// The metadata.jsonl of a folder of two pictures, behind a byte that says of what type and shape
// its labels are. What is accepted has all numbers; what is not names the file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t kind = input.Byte();
  api::Label label = {(kind & 1) != 0 ? api::LabelType::kInt64 : api::LabelType::kFloat32};
  if ((kind & 2) != 0) label.shape.push_back(2);
  if ((kind & 4) != 0) label.shape.push_back(3);
  static const testing::TemporaryFolder folder;
  folder.Write("metadata.jsonl", input.RestAsText());
  const std::vector<std::string> pictures = {"a.jpg", "b/c.png"};

  const auto read = source::ReadPictureNumbers(folder.path(), nullptr, label, pictures);
  if (!read.ok()) {
    fuzz::Require(absl::IsInvalidArgument(read.status()), "another error than kInvalidArgument");
    fuzz::Require(read.status().message().find(folder.path()) != absl::string_view::npos,
                  "an error that does not name the file");
    return 0;
  }
  const auto bytes = static_cast<size_t>(job::FieldsOf(label)->front().bytes());
  fuzz::Require(read->numbers.size() == pictures.size() * bytes, "another number of numbers");
  return 0;
}
