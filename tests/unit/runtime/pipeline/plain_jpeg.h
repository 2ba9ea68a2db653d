#pragma once

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <vector>
// jpeglib.h uses size_t and FILE without declaring them, and jerror.h needs jpeglib.h.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "api/hetero_training_job.h"
#include "runtime/pipeline/image.h"

// libjpeg-turbo as everybody uses it: what our decoder is compared with.
namespace hetero::pipeline {

struct PlainJpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
};

// Errors, and warnings that touch pixels, end the decoding; `*code` is then libjpeg's message code.
inline bool DecodeWithLibjpeg(std::span<const uint8_t> bytes, Image* out, int* code) {
  jpeg_decompress_struct jpeg{};
  PlainJpegErrors errors{};
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = [](j_common_ptr info) {
    std::longjmp(reinterpret_cast<PlainJpegErrors*>(info->err)->jump, 1);
  };
  errors.manager.emit_message = [](j_common_ptr info, int level) {
    const int code = info->err->msg_code;
    const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_NOT_SEQUENTIAL ||
                          code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
    if (level < 0 && !harmless) info->err->error_exit(info);
  };
  if (setjmp(errors.jump) != 0) {
    *code = errors.manager.msg_code;
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  out->Reshape({int32_t(jpeg.output_height), int32_t(jpeg.output_width), 3});
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = out->row(int32_t(jpeg.output_scanline));
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

// Where the first scan's codes are, after its header; the end, if there is none. What lies in the
// segments before it may look like a scan, and what lies in its header like a padded zero.
inline size_t StartOfCodes(std::span<const uint8_t> bytes) {
  constexpr uint8_t kScan = 0xda, kFirstAlone = 0xd0, kLastAlone = 0xd9, kAlone = 0x01;
  for (size_t at = 0; at + 3 < bytes.size();) {
    const uint8_t marker = bytes[at + 1];
    if (bytes[at] != 0xff || marker == 0xff || marker == 0) {
      ++at;
    } else if ((marker >= kFirstAlone && marker <= kLastAlone) || marker == kAlone) {
      at += 2;
    } else {
      at += 2 + size_t{bytes[at + 2]} * 256 + bytes[at + 3];
      if (marker == kScan) return std::min(at, bytes.size());
    }
  }
  return bytes.size();
}

// Several bytes of ones before a stuffed zero count as one. libjpeg begins such a block twice and
// then leaves coefficients of the first attempt in it, far from the end of a file. Only the codes
// are changed: headers, tables and comments may have such bytes too.
inline std::vector<uint8_t> WithoutPadding(std::span<const uint8_t> bytes) {
  auto next = bytes.begin() + static_cast<ptrdiff_t>(StartOfCodes(bytes));
  std::vector<uint8_t> without(bytes.begin(), next);
  while (next != bytes.end()) {
    const auto after = std::find_if(next, bytes.end(), [](uint8_t byte) { return byte != 0xff; });
    const bool stuffed = after != bytes.end() && after - next > 1 && *after == 0;
    without.insert(without.end(), stuffed ? after - 1 : next, after);
    if (after != bytes.end()) without.push_back(*after);
    next = after == bytes.end() ? after : after + 1;
  }
  return without;
}

// A JPEG of `image` with what `choose` sets.
inline std::vector<uint8_t> EncodeWithLibjpeg(
    const Image& image, const std::function<void(jpeg_compress_struct*)>& choose) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);  // ends the test's process
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = JDIMENSION(image.shape.width);
  jpeg.image_height = JDIMENSION(image.shape.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  choose(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(image.row(int32_t(jpeg.next_scanline)));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::vector<uint8_t> bytes(out, out + size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return bytes;
}

}  // namespace hetero::pipeline
