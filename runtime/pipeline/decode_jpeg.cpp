#include <setjmp.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
// jpeglib.h uses size_t and FILE without declaring them, and jerror.h needs jpeglib.h.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/decode.h"

namespace hetero::pipeline {
namespace {

struct ErrorState {
  jpeg_error_mgr manager;  // first, so that cinfo->err can be cast back
  jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

ErrorState* StateOf(j_common_ptr info) { return reinterpret_cast<ErrorState*>(info->err); }

[[noreturn]] void OnError(j_common_ptr info) {
  ErrorState* state = StateOf(info);
  info->err->format_message(info, state->message);
  longjmp(state->escape, 1);
}

// libjpeg fills in grey and goes on when data is missing or corrupt; such a picture is bad. Its
// other warnings (surplus bytes, odd markers) do not touch pixels.
void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      OnError(info);
    default:
      ++info->err->num_warnings;
  }
}

// The functions below are left by longjmp: they own nothing that has a destructor.

bool ReadHeader(jpeg_decompress_struct* jpeg, ErrorState* errors, const uint8_t* bytes,
                size_t size) {
  if (setjmp(errors->escape) != 0) return false;
  jpeg_create_decompress(jpeg);
  jpeg_mem_src(jpeg, bytes, static_cast<unsigned long>(size));
  jpeg_read_header(jpeg, TRUE);
  if (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK) {
    std::snprintf(errors->message, sizeof(errors->message),
                  "four colour components (CMYK); convert the file to RGB");
    return false;
  }
  jpeg->out_color_space = JCS_RGB;
  jpeg->dct_method = JDCT_ISLOW;
  jpeg->do_fancy_upsampling = TRUE;
  jpeg_calc_output_dimensions(jpeg);
  return true;
}

bool ReadPixels(jpeg_decompress_struct* jpeg, ErrorState* errors, uint8_t* pixels) {
  if (setjmp(errors->escape) != 0) return false;
  jpeg_start_decompress(jpeg);
  const size_t row_bytes = size_t(jpeg->output_width) * 3;
  while (jpeg->output_scanline < jpeg->output_height) {
    JSAMPROW row = pixels + size_t(jpeg->output_scanline) * row_bytes;
    jpeg_read_scanlines(jpeg, &row, 1);
  }
  jpeg_finish_decompress(jpeg);
  return true;
}

}  // namespace

absl::Status DecodeJpeg(std::span<const uint8_t> bytes, Image* out) {
  jpeg_decompress_struct jpeg;
  ErrorState errors;
  std::memset(&jpeg, 0, sizeof(jpeg));
  errors.message[0] = '\0';
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = OnError;
  errors.manager.emit_message = OnMessage;

  absl::Status status;
  if (!ReadHeader(&jpeg, &errors, bytes.data(), bytes.size())) {
    status = absl::DataLossError(absl::StrCat("JPEG: ", errors.message));
  } else if (int64_t{jpeg.output_width} * jpeg.output_height > kMaxPixels) {
    status = absl::DataLossError(absl::StrCat("JPEG: ", jpeg.output_height, "x", jpeg.output_width,
                                              " exceeds ", kMaxPixels, " pixels"));
  } else {
    out->Reshape({int32_t(jpeg.output_height), int32_t(jpeg.output_width), 3});
    if (!ReadPixels(&jpeg, &errors, out->bytes.data())) {
      status = absl::DataLossError(absl::StrCat("JPEG: ", errors.message));
    }
  }
  jpeg_destroy_decompress(&jpeg);
  return status;
}

}  // namespace hetero::pipeline
