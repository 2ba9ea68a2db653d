#include <png.h>
#include <setjmp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/pipeline/decode.h"

namespace hetero::pipeline {
namespace {

struct Reader {
  const uint8_t* next;
  size_t left;
  char message[128] = {};
  bool starved = false;  // there was no memory
  bool is_mask = false;  // values are kept as they lie in the file
  int colour_type = 0;   // in the file, as are
  int bit_depth = 0;     // these
};

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  Reader* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof(reader->message), "%s", message);
  png_longjmp(png, 1);
}

// Warnings are about ancillary chunks, never pixels.
void OnWarning(png_structp, png_const_charp) {}

png_voidp OnMalloc(png_structp png, png_alloc_size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) static_cast<Reader*>(png_get_mem_ptr(png))->starved = true;
  return memory;
}

void OnFree(png_structp, png_voidp memory) { std::free(memory); }

absl::Status Failure(const Reader& reader) {
  const std::string text = absl::StrCat("PNG: ", reader.message);
  return reader.starved ? absl::ResourceExhaustedError(text) : absl::DataLossError(text);
}

void OnRead(png_structp png, png_bytep target, size_t size) {
  Reader* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (size > reader->left) png_error(png, "premature end of file");
  std::memcpy(target, reader->next, size);
  reader->next += size;
  reader->left -= size;
}

// The functions below are left by longjmp: they own nothing that has a destructor.

bool ReadHeader(png_structp png, png_infop info, Reader* reader) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  // Of what is no part of the pixels libpng would reserve as much as the chunk says it has.
  constexpr png_byte kTransparency[] = "tRNS";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, kTransparency, 1);
  png_set_read_fn(png, reader, OnRead);
  png_read_info(png, info);
  reader->colour_type = png_get_color_type(png, info);
  reader->bit_depth = png_get_bit_depth(png, info);
  if (reader->is_mask) {
    png_set_packing(png);
  } else {
    png_set_scale_16(png);
    png_set_palette_to_rgb(png);
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool ReadPixels(png_structp png, uint8_t** rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

// Grey of fewer bits is scaled by some readers, so that nobody knows whether 1 means 1 or 255.
absl::Status CheckMaskKind(const Reader& reader) {
  const char* kind = nullptr;
  switch (reader.colour_type) {
    case PNG_COLOR_TYPE_PALETTE:
      return absl::OkStatus();
    case PNG_COLOR_TYPE_GRAY:
      if (reader.bit_depth == 8) return absl::OkStatus();
      kind = "grey";
      break;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      kind = "grey and transparency";
      break;
    default:
      kind = "colours";
      break;
  }
  return absl::DataLossError(
      absl::StrCat("PNG: has ", kind, " of ", reader.bit_depth,
                   " bits; a mask has one channel of 8 bits, or a palette whose indices count"));
}

// `size`: that a mask has to have.
absl::Status Decode(png_structp png, png_infop info, Reader* reader, const api::Size& size,
                    Image* out) {
  if (!ReadHeader(png, info, reader)) return Failure(*reader);
  const int64_t height = png_get_image_height(png, info);
  const int64_t width = png_get_image_width(png, info);
  if (height > kMaxPixels / width) {
    return absl::DataLossError(
        absl::StrCat("PNG: ", height, "x", width, " exceeds ", kMaxPixels, " pixels"));
  }
  if (reader->is_mask) {
    HETERO_RETURN_IF_ERROR(CheckMaskKind(*reader));
    if (height != size.height || width != size.width) {
      return absl::DataLossError(absl::StrCat("PNG: ", height, "x", width, ", and the picture is ",
                                              size.height, "x", size.width,
                                              "; a mask has a value for each of its pixels"));
    }
  }
  const int32_t channels = reader->is_mask ? 1 : 3;
  if (png_get_rowbytes(png, info) != size_t(width) * size_t(channels)) {
    return absl::DataLossError("PNG: cannot be converted to 8-bit RGB");
  }
  static thread_local std::vector<uint8_t*> rows;
  out->Reshape({int32_t(height), int32_t(width), channels});
  rows.resize(size_t(height));
  for (int32_t y = 0; y < int32_t(height); ++y) rows[size_t(y)] = out->row(y);
  return ReadPixels(png, rows.data()) ? absl::OkStatus() : Failure(*reader);
}

absl::Status ReadPng(Reader reader, const api::Size& size, Image* out) {
  png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &reader, OnError, OnWarning,
                                             &reader, OnMalloc, OnFree);
  if (png == nullptr) {
    return reader.starved ? absl::ResourceExhaustedError("PNG: out of memory")
                          : absl::InternalError("PNG: libpng has another version than its header");
  }
  png_infop info = png_create_info_struct(png);
  absl::Status status = info == nullptr ? absl::ResourceExhaustedError("PNG: out of memory")
                                        : Decode(png, info, &reader, size, out);
  png_destroy_read_struct(&png, &info, nullptr);
  return status;
}

}  // namespace

const char* PngVersion() { return png_get_libpng_ver(nullptr); }

absl::Status DecodePng(std::span<const uint8_t> bytes, Image* out) {
  return ReadPng({.next = bytes.data(), .left = bytes.size()}, {}, out);
}

absl::Status DecodeMask(std::span<const uint8_t> bytes, const api::Size& size, Image* out) {
  return ReadPng({.next = bytes.data(), .left = bytes.size(), .is_mask = true}, size, out);
}

absl::StatusOr<api::Size> PngSize(std::span<const uint8_t> bytes) {
  // The first chunk is IHDR, behind the signature, its length and its name.
  constexpr size_t kWidth = 16, kHeight = 20, kEnd = 24;
  if (bytes.size() < kEnd) return absl::DataLossError("PNG: premature end of file");
  return api::Size{int32_t(png_get_uint_32(bytes.data() + kHeight)),
                   int32_t(png_get_uint_32(bytes.data() + kWidth))};
}

}  // namespace hetero::pipeline
