#include "runtime/pipeline/jpeg_huffman.h"

#include <jerror.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace hetero::pipeline {
namespace {

using Entry = JpegHuffmanTable::Entry;

constexpr int kBlockSize = 64;
// Longest code and longest coefficient.
constexpr int kLongestSymbol = 16 + 15;

// Where the k-th coefficient of the zigzag goes. Malformed files have runs past the last one.
constexpr std::array<uint8_t, kBlockSize + 16> kNaturalOrder = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33,
    40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36,
    29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

// The coefficient that `size` > 0 bits stand for (figure F.12).
int Extend(int bits, int size) { return bits < (1 << (size - 1)) ? bits - (1 << size) + 1 : bits; }

[[noreturn]] void Fail(j_decompress_ptr jpeg, int code) {
  jpeg->err->msg_code = code;
  jpeg->err->error_exit(reinterpret_cast<j_common_ptr>(jpeg));
  __builtin_unreachable();
}

uint64_t LoadBigEndian(const JOCTET* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

bool HasByteFf(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  return ((~word - kOnes) & word & (kOnes << 7)) != 0;
}

// The bits of a scan, without the zeros that are stuffed after bytes of ones.
class Bits {
 public:
  Bits(uint64_t bits, int count, const jpeg_source_mgr& source)
      : bits_(bits),
        count_(count),
        next_(source.next_input_byte),
        end_(source.next_input_byte + source.bytes_in_buffer) {}

  // Enough for a symbol and its coefficient, unless the scan ends: then zeros follow.
  void Need() {
    if (count_ < kLongestSymbol) Fill();
  }
  uint64_t front() const { return bits_; }
  void Drop(int count) {
    bits_ <<= count;
    count_ -= count;
  }
  // A coefficient of `size` > 0 bits.
  int Take(int size) {
    const int value = Extend(static_cast<int>(bits_ >> (64 - size)), size);
    Drop(size);
    return value;
  }
  uint64_t bits() const { return bits_; }
  int count() const { return count_; }  // negative: more were taken than there are
  const JOCTET* next() const { return next_; }

 private:
  void Fill() {
    if (end_ - next_ >= 8) {
      const uint64_t word = LoadBigEndian(next_);
      if (!HasByteFf(word)) {
        // The bits after the last whole byte come again, as the same bits, with the next fill.
        bits_ |= word >> count_;
        const int bytes = (63 - count_) >> 3;
        next_ += bytes;
        count_ += 8 * bytes;
        return;
      }
    }
    *this = FilledByByte(*this);
  }
  static Bits FilledByByte(Bits bits);

  uint64_t bits_;
  int count_;
  const JOCTET* next_;
  const JOCTET* end_;
};

// By value, here and below: the compiler then keeps the bits in registers.
Bits Bits::FilledByByte(Bits bits) {
  while (bits.count_ <= 56 && bits.next_ < bits.end_) {
    uint64_t byte = *bits.next_;
    if (byte != 0xff) {
      ++bits.next_;
    } else {
      // Several bytes of ones before the zero mean one, as libjpeg reads them.
      const JOCTET* after = std::find_if(bits.next_, bits.end_, [](JOCTET b) { return b != 0xff; });
      if (after == bits.end_ || *after != 0) break;  // a marker
      bits.next_ = after + 1;
    }
    bits.bits_ |= byte << (56 - bits.count_);
    bits.count_ += 8;
  }
  return bits;
}

// The symbol at the front of `bits`, when it has no entry of its own, and its code's length.
struct Symbol {
  int value;
  int length;
};
Symbol LongSymbol(j_decompress_ptr jpeg, const JpegHuffmanTable& table, uint64_t bits, int count) {
  Symbol symbol{};
  symbol.length = table.LongCode(bits, &symbol.value);
  if (symbol.length == 0) Fail(jpeg, count < 16 ? JWRN_HIT_MARKER : JWRN_HUFF_BAD_CODE);
  return symbol;
}

// The difference from the constant term of the block before.
[[gnu::always_inline]] inline int ReadDc(j_decompress_ptr jpeg, const JpegHuffmanTable& table,
                                         Bits& bits) {
  bits.Need();
  const Entry& entry = table.Look(bits.front());
  int size = entry.skip;
  if (entry.length == 0) {
    const Symbol symbol = LongSymbol(jpeg, table, bits.front(), bits.count());
    bits.Drop(symbol.length);
    size = symbol.value;
  } else {
    bits.Drop(entry.length);
    if (entry.value != 0) return entry.value;
  }
  return size == 0 ? 0 : bits.Take(size);
}

// The other coefficients. Without kKeep they are only passed over, and `block` is not touched.
template <bool kKeep>
[[gnu::always_inline]] inline void ReadAc(j_decompress_ptr jpeg, const JpegHuffmanTable& table,
                                          Bits& bits, JCOEF* block) {
  for (int k = 1; k < kBlockSize; ++k) {
    bits.Need();
    const Entry& entry = table.Look(bits.front());
    bits.Drop(entry.length);
    if (entry.value != 0) [[likely]] {
      k += entry.skip;
      if constexpr (kKeep) block[kNaturalOrder[size_t(k)]] = entry.value;
      continue;
    }
    int symbol = entry.skip;
    if (entry.length == 0) {
      const Symbol found = LongSymbol(jpeg, table, bits.front(), bits.count());
      bits.Drop(found.length);
      symbol = found.value;
    }
    const int zeros = symbol >> 4, size = symbol & 15;
    if (size == 0) {
      if (zeros != 15) break;  // the rest is zero
      k += 15;
      continue;
    }
    k += zeros;
    if constexpr (kKeep) {
      block[kNaturalOrder[size_t(k)]] = static_cast<JCOEF>(bits.Take(size));
    } else {
      bits.Drop(size);
    }
  }
}

// The tables of the files that a thread reads are often the same.
struct Tables {
  std::array<JpegHuffmanTable, NUM_HUFF_TBLS> dc, ac;
};
thread_local Tables tables;

}  // namespace

void JpegHuffmanTable::Read(const JHUFF_TBL& table) {
  if (std::equal(counts_.begin() + 1, counts_.end(), table.bits + 1) &&
      std::equal(symbols_.begin(), symbols_.end(), table.huffval)) {
    return;
  }
  std::copy_n(table.bits, counts_.size(), counts_.begin());
  std::copy_n(table.huffval, symbols_.size(), symbols_.begin());
  entries_.fill({});
  uint32_t code = 0;
  int index = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    offsets_[size_t(length)] = index - static_cast<int32_t>(code);
    for (int i = 0; i < counts_[size_t(length)]; ++i, ++code, ++index) {
      const int spare = kLookahead - length;
      if (spare < 0) continue;
      const uint8_t symbol = symbols_[size_t(index)];
      const int size = symbol & 15;
      for (int rest = 0; rest < (1 << spare); ++rest) {
        Entry& entry = entries_[(size_t{code} << spare) | size_t(rest)];
        entry = {0, symbol, static_cast<uint8_t>(length)};
        if (size == 0 || size > spare) continue;
        entry = {static_cast<int16_t>(Extend(rest >> (spare - size), size)),
                 static_cast<uint8_t>(symbol >> 4), static_cast<uint8_t>(length + size)};
      }
    }
    limits_[size_t(length)] = code << (16 - length);
  }
}

int JpegHuffmanTable::LongCode(uint64_t bits, int* symbol) const {
  const auto front = static_cast<uint32_t>(bits >> 48);
  for (int length = kLookahead + 1; length <= 16; ++length) {
    if (front >= limits_[size_t(length)]) continue;
    const int32_t index = static_cast<int32_t>(front >> (16 - length)) + offsets_[size_t(length)];
    *symbol = symbols_[size_t(index) & 255];
    return length;
  }
  return 0;
}

void JpegHuffmanReader::TakeOver(jpeg_decompress_struct* jpeg) {
  const bool several_scans = jpeg->comps_in_scan < jpeg->num_components;
  if (jpeg->progressive_mode || jpeg->arith_code || several_scans) return;
  for (int i = 0; i < jpeg->comps_in_scan; ++i) {
    const jpeg_component_info& component = *jpeg->cur_comp_info[i];
    JpegHuffmanTable& dc = tables.dc[size_t(component.dc_tbl_no)];
    JpegHuffmanTable& ac = tables.ac[size_t(component.ac_tbl_no)];
    dc.Read(*jpeg->dc_huff_tbl_ptrs[component.dc_tbl_no]);
    ac.Read(*jpeg->ac_huff_tbl_ptrs[component.ac_tbl_no]);
    dc_[size_t(i)] = &dc;
    ac_[size_t(i)] = &ac;
  }
  restart_in_ = jpeg->restart_interval;
  jpeg->client_data = this;
  jpeg->entropy->decode_mcu = DecodeMcu;
}

boolean JpegHuffmanReader::DecodeMcu(j_decompress_ptr jpeg, JBLOCKROW* blocks) {
  auto* reader = static_cast<JpegHuffmanReader*>(jpeg->client_data);
  return blocks != nullptr ? reader->Decode<true>(jpeg, blocks)
                           : reader->Decode<false>(jpeg, nullptr);
}

template <bool kKeep>
boolean JpegHuffmanReader::Decode(j_decompress_ptr jpeg, JBLOCKROW* blocks) {
  if (jpeg->restart_interval != 0) {
    if (restart_in_ == 0) Restart(jpeg);
    --restart_in_;
  }
  Bits bits(bits_, count_, *jpeg->src);
  for (int i = 0; i < jpeg->blocks_in_MCU; ++i) {
    const auto component = static_cast<size_t>(jpeg->MCU_membership[i]);
    last_dc_[component] += static_cast<uint32_t>(ReadDc(jpeg, *dc_[component], bits));
    JCOEF* block = nullptr;
    if constexpr (kKeep) {
      block = *blocks[i];
      block[0] = static_cast<JCOEF>(last_dc_[component]);
    }
    ReadAc<kKeep>(jpeg, *ac_[component], bits, block);
  }
  if (bits.count() < 0) Fail(jpeg, JWRN_HIT_MARKER);
  bits_ = bits.bits();
  count_ = bits.count();
  jpeg->src->bytes_in_buffer -= size_t(bits.next() - jpeg->src->next_input_byte);
  jpeg->src->next_input_byte = bits.next();
  return TRUE;
}

void JpegHuffmanReader::Restart(j_decompress_ptr jpeg) {
  const JOCTET* next = jpeg->src->next_input_byte;
  const JOCTET* const end = next + jpeg->src->bytes_in_buffer;
  JOCTET marker = 0;
  while (marker == 0) {  // a stuffed zero
    next = std::find(next, end, JOCTET{0xff});
    next = std::find_if(next, end, [](JOCTET byte) { return byte != 0xff; });
    if (next == end) Fail(jpeg, JWRN_JPEG_EOF);
    marker = *next++;
  }
  if (marker != JPEG_RST0 + next_restart_) Fail(jpeg, JWRN_MUST_RESYNC);
  next_restart_ = (next_restart_ + 1) % 8;
  jpeg->src->next_input_byte = next;
  jpeg->src->bytes_in_buffer = size_t(end - next);
  bits_ = 0;
  count_ = 0;
  last_dc_.fill(0);
  restart_in_ = jpeg->restart_interval;
}

}  // namespace hetero::pipeline
