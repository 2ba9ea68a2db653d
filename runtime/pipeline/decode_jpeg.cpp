#include <setjmp.h>

#include <algorithm>
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
#include "runtime/pipeline/jpeg_huffman.h"

namespace hetero::pipeline {
namespace {

struct ErrorState {
  jpeg_error_mgr manager;  // first, so that cinfo->err can be cast back
  jpeg_progress_mgr progress;
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

// A file in several scans is kept whole as coefficients, six bytes a pixel, and each scan goes over
// all of them: a small file could take a gigabyte, and minutes.
constexpr int64_t kMaxScannedPixels = kMaxPixels / 2;  // where Pillow begins to warn
constexpr int64_t kMaxScans = 100;                     // progressive encoders write about ten
constexpr int64_t kMaxScanWork = 16 * kMaxScannedPixels;

int64_t PixelsOf(const jpeg_decompress_struct& jpeg) {
  return int64_t{jpeg.output_width} * jpeg.output_height;
}

// Called before each step through a file of several scans.
void LimitScans(j_common_ptr info) {
  auto* jpeg = reinterpret_cast<j_decompress_ptr>(info);
  const int64_t most = std::min(kMaxScans, kMaxScanWork / std::max<int64_t>(1, PixelsOf(*jpeg)));
  if (jpeg->input_scan_number <= most) return;
  ErrorState* state = StateOf(info);
  std::snprintf(state->message, sizeof(state->message),
                "more than %lld scans, which is too much work for %u x %u pixels",
                static_cast<long long>(most), jpeg->output_height, jpeg->output_width);
  longjmp(state->escape, 1);
}

// The functions below are left by longjmp: they own nothing that has a destructor.

bool ReadHeader(jpeg_decompress_struct* jpeg, ErrorState* errors, const uint8_t* bytes,
                size_t size) {
  if (setjmp(errors->escape) != 0) return false;
  jpeg_create_decompress(jpeg);
  jpeg->progress = &errors->progress;
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

bool ReadPixels(jpeg_decompress_struct* jpeg, ErrorState* errors, JpegHuffmanReader* codes,
                uint8_t* pixels) {
  if (setjmp(errors->escape) != 0) return false;
  jpeg_start_decompress(jpeg);
  codes->TakeOver(jpeg);
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
  errors->progress = {};
  errors->progress.progress_monitor = LimitScans;
}

absl::Status Failure(const ErrorState& errors) {
  if (errors.manager.msg_code == JERR_OUT_OF_MEMORY) {
    return absl::ResourceExhaustedError(absl::StrCat("JPEG: ", errors.message));
  }
  return absl::DataLossError(absl::StrCat("JPEG: ", errors.message));
}

absl::Status ReadCheckedHeader(jpeg_decompress_struct* jpeg, ErrorState* errors,
                               std::span<const uint8_t> bytes) {
  if (!ReadHeader(jpeg, errors, bytes.data(), bytes.size())) return Failure(*errors);
  const bool scans = jpeg_has_multiple_scans(jpeg) != 0;
  const int64_t most = scans ? kMaxScannedPixels : kMaxPixels;
  if (PixelsOf(*jpeg) <= most) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("JPEG: ", jpeg->output_height, "x", jpeg->output_width,
                                          " exceeds ", most, " pixels",
                                          scans ? " of a picture in several scans" : ""));
}

// Columns beside the rectangle that smooth upsampling of chroma looks at.
constexpr int32_t kMargin = 2;

// Columns [first, first + count) of the picture.
struct Columns {
  JDIMENSION first;
  JDIMENSION count;
};

bool StartBox(jpeg_decompress_struct* jpeg, ErrorState* errors, JpegHuffmanReader* codes,
              const Box& box, Columns* columns) {
  if (setjmp(errors->escape) != 0) return false;
  jpeg_start_decompress(jpeg);
  codes->TakeOver(jpeg);
  const int32_t width = int32_t(jpeg->output_width);
  columns->first = JDIMENSION(std::max(0, box.left - kMargin));
  columns->count = JDIMENSION(std::min(width, box.left + box.width + kMargin)) - columns->first;
  // Moves the first column to the left, to where a block begins.
  if (columns->count < jpeg->output_width) {
    jpeg_crop_scanline(jpeg, &columns->first, &columns->count);
  }
  return true;
}

// Rows of the columns that StartBox() chose, into `pixels` without gaps. Leaves the decoder in the
// middle of the file.
bool ReadBox(jpeg_decompress_struct* jpeg, ErrorState* errors, const Box& box, uint8_t* pixels) {
  if (setjmp(errors->escape) != 0) return false;
  const JDIMENSION top = JDIMENSION(box.top);
  const JDIMENSION bottom = top + JDIMENSION(box.height);
  const size_t row_bytes = size_t(jpeg->output_width) * 3;
  // Chroma is smoothed over rows too: what comes right after skipped rows is decoded and dropped.
  constexpr JDIMENSION kRows = 2 * kMargin;
  if (top > kRows) jpeg_skip_scanlines(jpeg, top - kRows);
  while (jpeg->output_scanline < bottom) {
    const JDIMENSION y = std::max(jpeg->output_scanline, top) - top;
    JSAMPROW row = pixels + size_t(y) * row_bytes;
    jpeg_read_scanlines(jpeg, &row, 1);
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
                           absl::FunctionRef<Box(const api::ImageShape&)> choose, Image* out,
                           Box* inside) {
  if (!HasEnd(bytes)) {
    absl::Status status = DecodeJpeg(bytes, out);
    if (status.ok()) *inside = choose(out->shape);
    return status;
  }
  jpeg_decompress_struct jpeg;
  ErrorState errors;
  StartDecompressor(&jpeg, &errors);
  absl::Status status = ReadCheckedHeader(&jpeg, &errors, bytes);
  if (status.ok()) {
    const Box box = choose({int32_t(jpeg.output_height), int32_t(jpeg.output_width), 3});
    Columns columns{};
    JpegHuffmanReader codes;
    bool read = StartBox(&jpeg, &errors, &codes, box, &columns);
    if (read) {
      out->Reshape({box.height, int32_t(columns.count), 3});
      *inside = {0, box.left - int32_t(columns.first), box.height, box.width};
      read = ReadBox(&jpeg, &errors, box, out->bytes.data());
    }
    if (!read) status = Failure(errors);
  }
  jpeg_destroy_decompress(&jpeg);
  return status;
}

absl::StatusOr<api::Size> JpegSize(std::span<const uint8_t> bytes) {
  jpeg_decompress_struct jpeg;
  ErrorState errors;
  StartDecompressor(&jpeg, &errors);
  const absl::Status status = ReadCheckedHeader(&jpeg, &errors, bytes);
  const api::Size size = {int32_t(jpeg.output_height), int32_t(jpeg.output_width)};
  jpeg_destroy_decompress(&jpeg);
  if (!status.ok()) return status;
  return size;
}

// The library defines its version as it stands, without quotes.
#define HETERO_QUOTE(text) #text
#define HETERO_QUOTE_VALUE(name) HETERO_QUOTE(name)
const char* JpegVersion() { return HETERO_QUOTE_VALUE(LIBJPEG_TURBO_VERSION); }

absl::Status DecodeJpeg(std::span<const uint8_t> bytes, Image* out) {
  jpeg_decompress_struct jpeg;
  ErrorState errors;
  StartDecompressor(&jpeg, &errors);
  absl::Status status = ReadCheckedHeader(&jpeg, &errors, bytes);
  if (status.ok()) {
    out->Reshape({int32_t(jpeg.output_height), int32_t(jpeg.output_width), 3});
    JpegHuffmanReader codes;
    if (!ReadPixels(&jpeg, &errors, &codes, out->bytes.data())) status = Failure(errors);
  }
  jpeg_destroy_decompress(&jpeg);
  return status;
}

}  // namespace hetero::pipeline
