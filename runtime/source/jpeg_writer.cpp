#include "runtime/source/jpeg_writer.h"

#include <jpeglib.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

constexpr int kQuality = 92;

struct ErrorReturn {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void OnError(j_common_ptr common) {
  auto* error = reinterpret_cast<ErrorReturn*>(common->err);
  (*common->err->format_message)(common, error->message);
  std::longjmp(error->jump, 1);
}

// Holds only plain values: libjpeg leaves it by longjmp, which runs no destructors.
bool Compress(const uint8_t* pixels, api::Size size, ErrorReturn* error, unsigned char** out,
              unsigned long* out_size) {
  jpeg_compress_struct jpeg{};
  jpeg.err = jpeg_std_error(&error->manager);
  error->manager.error_exit = OnError;
  if (setjmp(error->jump) != 0) {
    jpeg_destroy_compress(&jpeg);
    return false;
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, out, out_size);
  jpeg.image_width = static_cast<JDIMENSION>(size.width);
  jpeg.image_height = static_cast<JDIMENSION>(size.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, kQuality, TRUE);
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + size_t{3} * size.width * jpeg.next_scanline);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return true;
}

}  // namespace

absl::Status EncodeJpeg(std::span<const uint8_t> pixels, api::Size size,
                        std::vector<uint8_t>* jpeg) {
  ErrorReturn error{};
  unsigned char* out = nullptr;
  unsigned long out_size = 0;
  const bool done = Compress(pixels.data(), size, &error, &out, &out_size);
  if (done) jpeg->assign(out, out + out_size);
  std::free(out);
  if (done) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("JPEG of ", size.height, "x", size.width, ": ", error.message));
}

}  // namespace hetero::source
