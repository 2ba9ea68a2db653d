#include <cstring>

#include "runtime/pipeline/decode.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/runtime/pipeline/plain_jpeg.h"

// A JPEG file. Our decoder, with its own reader of the codes, against libjpeg's own, as
// jpeg_huffman_test has it: the same pixels of every good file, and no bad file that only we
// accept. And the rectangle of a file that is decoded for a crop against the whole picture.
namespace hetero::pipeline {
namespace {

// Larger pictures only take time; the decoder's own limit is tested above that.
constexpr int64_t kLargest = 256 * 256;

// As the header says; 0 when there is none that can be read.
int64_t AnnouncedPixels(std::span<const uint8_t> bytes) {
  jpeg_decompress_struct jpeg{};
  PlainJpegErrors errors{};
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = [](j_common_ptr info) {
    std::longjmp(reinterpret_cast<PlainJpegErrors*>(info->err)->jump, 1);
  };
  errors.manager.emit_message = [](j_common_ptr, int) {};
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return 0;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  const int64_t pixels = int64_t{jpeg.image_width} * jpeg.image_height;
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

// A rectangle inside `shape` that depends on the input's last bytes.
Box SomeBox(std::span<const uint8_t> bytes, const api::ImageShape& shape) {
  const auto below = [&bytes](int32_t limit) {
    if (bytes.empty()) return 0;
    const int32_t value = bytes.back();
    bytes = bytes.first(bytes.size() - 1);
    return value % limit;
  };
  Box box;
  box.height = 1 + below(shape.height);
  box.width = 1 + below(shape.width);
  box.top = below(shape.height - box.height + 1);
  box.left = below(shape.width - box.width + 1);
  return box;
}

void CheckBox(std::span<const uint8_t> bytes, const Image* whole) {
  Box box;
  Box inside;
  Image part;
  const auto choose = [&](const api::ImageShape& shape) { return box = SomeBox(bytes, shape); };
  const bool decoded = DecodeJpegBox(bytes, choose, &part, &inside).ok();
  if (whole == nullptr) return;
  fuzz::Require(decoded, "a picture decodes, but a part of it does not");
  fuzz::Require(inside.height == box.height && inside.width == box.width, "a part of another size");
  for (int32_t y = 0; y < box.height; ++y) {
    fuzz::Require(
        std::memcmp(part.row(inside.top + y) + size_t(inside.left) * 3,
                    whole->row(box.top + y) + size_t(box.left) * 3, size_t(box.width) * 3) == 0,
        "a part has other pixels than the whole picture");
  }
}

}  // namespace
}  // namespace hetero::pipeline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::pipeline;
  using hetero::fuzz::Require;
  const std::span<const uint8_t> bytes(data, size);
  const int64_t pixels = AnnouncedPixels(bytes);
  if (pixels > kLargest && pixels <= kMaxPixels) return 0;

  Image ours;
  // What an earlier picture left must not show through.
  ours.bytes.assign(static_cast<size_t>(kLargest) * 3, 0xaa);
  const absl::Status status = DecodeJpeg(bytes, &ours);
  Require(status.ok() || status.message().substr(0, 6) == "JPEG: ", "an error that names nothing");
  if (pixels > kMaxPixels) {
    Require(!status.ok(), "a picture above the limit is decoded");
    return 0;
  }
  CheckBox(bytes, status.ok() ? &ours : nullptr);

  Image theirs;
  int code = 0;
  if (!DecodeWithLibjpeg(bytes, &theirs, &code)) {
    Require(!status.ok(), "we accept what libjpeg does not");
  } else if (status.ok()) {
    Require(ours.shape == theirs.shape, "another shape than libjpeg's");
    if (ours.bytes == theirs.bytes) return 0;
    const std::vector<uint8_t> without = WithoutPadding(bytes);
    Require(DecodeWithLibjpeg(without, &theirs, &code) && ours.bytes == theirs.bytes,
            "other pixels than libjpeg's");
  } else {
    Require(status.message() == "JPEG: Corrupt JPEG data: bad Huffman code" ||
                status.message().find("more than 100 scans") != absl::string_view::npos,
            "we refuse what libjpeg accepts");
  }
  return 0;
}
