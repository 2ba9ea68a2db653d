#include "runtime/source/idx.h"

#include "runtime/source/gzip.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/gzip.h"
#include "tests/support/temporary_folder.h"

// The two files of an IDX dataset: how they are packed, the length of the first, and both. Packing
// them by gzip here gets past its checksum; the bytes themselves may be a gzip file, too.
namespace hetero::source {
namespace {

std::string TextOf(std::span<const uint8_t> bytes) {
  return std::string(fuzz::TextOf(bytes.data(), bytes.size()));
}

void CheckSamples(const Dataset& dataset) {
  const api::ImageShape shape = dataset.image();
  RawSample sample;
  for (int64_t id = 0; id < std::min<int64_t>(dataset.size(), 16); ++id) {
    const absl::Status status = dataset.Read(id, &sample);
    fuzz::Require(status.ok() || absl::IsDataLoss(status), "a sample that storage failed on");
    if (!status.ok()) continue;
    fuzz::Require(sample.shape == shape, "a sample of another shape");
    fuzz::Require(sample.bytes.size() == size_t(shape.height) * size_t(shape.width),
                  "a sample of another size");
    fuzz::Require(sample.label >= 0 && sample.label < dataset.classes(), "a label without a class");
  }
  fuzz::Require(absl::IsOutOfRange(dataset.Read(dataset.size(), &sample)), "one sample too many");
}

absl::StatusOr<std::unique_ptr<Dataset>> Open(const testing::TemporaryFolder& folder,
                                              std::span<const uint8_t> images,
                                              std::span<const uint8_t> labels) {
  folder.Write("train-images-idx3-ubyte", TextOf(images));
  folder.Write("train-labels-idx1-ubyte", TextOf(labels));
  return OpenIdx(folder.path(), nullptr, {}, job::Split::kTrain);
}

}  // namespace
}  // namespace hetero::source

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::source;
  using hetero::fuzz::Require;
  hetero::fuzz::Input input(data, size);
  const bool packed = (input.Byte() & 1) != 0;
  const std::span<const uint8_t> images = input.Take(input.Short());
  const std::span<const uint8_t> labels = input.Rest();
  static const hetero::testing::TemporaryFolder folder;

  const auto dataset = packed ? Open(folder, hetero::fuzz::Gzip(images), hetero::fuzz::Gzip(labels))
                              : Open(folder, images, labels);
  if (!dataset.ok()) {
    Require(dataset.status().message().find(folder.path()) != absl::string_view::npos,
            "an error that does not name the file");
    return 0;
  }
  CheckSamples(**dataset);
  if (!packed || IsGzip(images) || IsGzip(labels)) return 0;
  const auto plain = Open(folder, images, labels);
  Require(plain.ok() && (*plain)->fingerprint() == (*dataset)->fingerprint(),
          "a gzipped and a plain copy differ");
  return 0;
}
