#include <setjmp.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>
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

void StartDecompressor(jpeg_decompress_struct* jpeg, ErrorState* errors) {
  std::memset(jpeg, 0, sizeof(*jpeg));
  errors->message[0] = '\0';
  jpeg->err = jpeg_std_error(&errors->manager);
  errors->manager.error_exit = OnError;
  errors->manager.emit_message = OnMessage;
}

absl::Status Failure(const ErrorState& errors) {
  return absl::DataLossError(absl::StrCat("JPEG: ", errors.message));
}

absl::Status ReadCheckedHeader(jpeg_decompress_struct* jpeg, ErrorState* errors,
                               std::span<const uint8_t> bytes) {
  if (!ReadHeader(jpeg, errors, bytes.data(), bytes.size())) return Failure(*errors);
  if (int64_t{jpeg->output_width} * jpeg->output_height <= kMaxPixels) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("JPEG: ", jpeg->output_height, "x", jpeg->output_width,
                                          " exceeds ", kMaxPixels, " pixels"));
}

// Columns beside the rectangle that smooth upsampling of chroma looks at.
constexpr int32_t kMargin = 2;

// Leaves the decoder in the middle of the file. `row` has room for a whole row.
bool ReadBox(jpeg_decompress_struct* jpeg, ErrorState* errors, const Box& box, uint8_t* row,
             uint8_t* pixels) {
  if (setjmp(errors->escape) != 0) return false;
  jpeg_start_decompress(jpeg);
  const int32_t width = int32_t(jpeg->output_width);
  JDIMENSION first = JDIMENSION(std::max(0, box.left - kMargin));
  JDIMENSION columns = JDIMENSION(std::min(width, box.left + box.width + kMargin)) - first;
  // Moves `first` to the left, to where a block begins.
  if (columns < jpeg->output_width) jpeg_crop_scanline(jpeg, &first, &columns);
  const size_t offset = (size_t(box.left) - first) * 3;
  const size_t size = size_t(box.width) * 3;
  // Chroma is smoothed over rows too: what comes right after skipped rows is decoded and dropped.
  const JDIMENSION margin = JDIMENSION(2 * kMargin);
  if (JDIMENSION(box.top) > margin) jpeg_skip_scanlines(jpeg, JDIMENSION(box.top) - margin);
  while (jpeg->output_scanline < JDIMENSION(box.top)) {
    JSAMPROW target = row;
    jpeg_read_scanlines(jpeg, &target, 1);
  }
  for (int32_t y = 0; y < box.height; ++y) {
    JSAMPROW target = row;
    jpeg_read_scanlines(jpeg, &target, 1);
    std::memcpy(pixels + size_t(y) * size, row + offset, size);
  }
  return true;
}

// The marker that ends a JPEG file; a truncated file lacks it.
bool HasEnd(std::span<const uint8_t> bytes) {
  // Programs append what they like, but rarely much.
  constexpr size_t kSearched = 4096;
  const size_t stop = bytes.size() - std::min(bytes.size(), kSearched);
  for (size_t i = bytes.size(); i >= stop + 2; --i) {
    if (bytes[i - 2] == 0xff && bytes[i - 1] == JPEG_EOI) return true;
  }
  return false;
}

}  // namespace

absl::Status DecodeJpegBox(std::span<const uint8_t> bytes,
                           absl::FunctionRef<Box(const api::ImageShape&)> choose, Image* out) {
  static thread_local std::vector<uint8_t> row;
  static thread_local Image whole;
  jpeg_decompress_struct jpeg;
  ErrorState errors;
  StartDecompressor(&jpeg, &errors);
  absl::Status status = ReadCheckedHeader(&jpeg, &errors, bytes);
  if (status.ok() && HasEnd(bytes)) {
    const Box box = choose({int32_t(jpeg.output_height), int32_t(jpeg.output_width), 3});
    row.resize(size_t(jpeg.output_width) * 3);
    out->Reshape({box.height, box.width, 3});
    if (!ReadBox(&jpeg, &errors, box, row.data(), out->bytes.data())) status = Failure(errors);
    jpeg_destroy_decompress(&jpeg);
    return status;
  }
  jpeg_destroy_decompress(&jpeg);
  if (!status.ok()) return status;
  if (absl::Status decoded = DecodeJpeg(bytes, &whole); !decoded.ok()) return decoded;
  const Box box = choose(whole.shape);
  out->Reshape({box.height, box.width, 3});
  for (int32_t y = 0; y < box.height; ++y) {
    std::memcpy(out->row(y), whole.row(box.top + y) + size_t(box.left) * 3, out->row_bytes());
  }
  return absl::OkStatus();
}

absl::Status DecodeJpeg(std::span<const uint8_t> bytes, Image* out) {
  jpeg_decompress_struct jpeg;
  ErrorState errors;
  StartDecompressor(&jpeg, &errors);
  absl::Status status = ReadCheckedHeader(&jpeg, &errors, bytes);
  if (status.ok()) {
    out->Reshape({int32_t(jpeg.output_height), int32_t(jpeg.output_width), 3});
    if (!ReadPixels(&jpeg, &errors, out->bytes.data())) status = Failure(errors);
  }
  jpeg_destroy_decompress(&jpeg);
  return status;
}

}  // namespace hetero::pipeline
