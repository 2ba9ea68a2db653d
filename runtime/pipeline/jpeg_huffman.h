#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
// jpeglib.h uses size_t and FILE without declaring them; jpegint.h, which describes libjpeg's
// modules, needs it.
// clang-format off
#include <jpeglib.h>
extern "C" {
#include <jpegint.h>
}
// clang-format on

namespace hetero::pipeline {

// A Huffman table of a file, made for reading (ITU-T T.81, annex F.2.2).
class JpegHuffmanTable {
 public:
  // What the next kLookahead bits say.
  struct Entry {
    // The coefficient that follows the code, when it lies within these bits, too; otherwise 0.
    int16_t value = 0;
    // With a coefficient: the zeros before it. Otherwise the symbol.
    uint8_t skip = 0;
    // Bits of the code, and of the coefficient that comes with it. 0: the code is longer, or none.
    uint8_t length = 0;
  };
  static constexpr int kLookahead = 10;

  // Cheap when the table is the one before. `table` has been checked by libjpeg.
  void Read(const JHUFF_TBL& table);

  const Entry& Look(uint64_t bits) const { return entries_[bits >> (64 - kLookahead)]; }
  // Of a code of more than kLookahead bits at the front of `bits`: its length, 0 if there is none.
  int LongCode(uint64_t bits, int* symbol) const;

 private:
  std::array<uint8_t, 17> counts_{};  // [1..16]: codes of each length
  std::array<uint8_t, 256> symbols_{};
  std::array<Entry, size_t{1} << kLookahead> entries_{};
  // Of codes of each length, aligned to the left of 16 bits: one above the last. Index of the
  // symbol of a code: the code plus offset.
  std::array<uint32_t, 17> limits_{};
  std::array<int32_t, 17> offsets_{};
};

// Reads the coefficients of a baseline JPEG in place of libjpeg's own module, and gives the same:
// a code and the coefficient after it are looked up at once, and bytes are taken eight at a time.
// Stricter in one thing: bits that are no code are an error wherever they stand.
class JpegHuffmanReader {
 public:
  // For `jpeg` right after jpeg_start_decompress(), whose source is memory and whose client_data
  // nobody uses. Files that are not baseline, or not in one scan, stay with libjpeg.
  void TakeOver(jpeg_decompress_struct* jpeg);

 private:
  static boolean DecodeMcu(j_decompress_ptr jpeg, JBLOCKROW* blocks);
  template <bool kKeep>
  boolean Decode(j_decompress_ptr jpeg, JBLOCKROW* blocks);
  void Restart(j_decompress_ptr jpeg);

  std::array<const JpegHuffmanTable*, MAX_COMPS_IN_SCAN> dc_{};
  std::array<const JpegHuffmanTable*, MAX_COMPS_IN_SCAN> ac_{};
  std::array<uint32_t, MAX_COMPS_IN_SCAN> last_dc_{};  // wraps around in malformed files
  uint64_t bits_ = 0;                                  // the next one is the highest
  int count_ = 0;
  unsigned restart_in_ = 0;  // MCUs until a restart marker
  int next_restart_ = 0;     // its number
};

}  // namespace hetero::pipeline
