#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/source/mds_index.h"

// What lies around the samples of an MDS dataset, byte for byte as MosaicML's MDSWriter 0.13 puts
// it: MdsTable(), MdsConfig(), the samples; and index.json.
namespace hetero::source {

// Of a shard: places of samples are words of 32 bits.
inline constexpr int64_t kMostMdsBytes = 0xffffffff;

// Bytes that a shard's table takes for no sample, and for each.
inline constexpr int64_t kMdsTable = 8;
inline constexpr int64_t kMdsTableSample = 4;

// `columns` in the order of their names, `most_bytes` what no shard of several samples exceeds.
std::string MdsConfig(std::span<const MdsColumn> columns, int64_t most_bytes);

// How many samples there are, where each begins, and where the last one ends, for samples of
// `lengths` bytes behind a config of `config` bytes. All together are kMostMdsBytes at most.
std::vector<uint8_t> MdsTable(std::span<const uint32_t> lengths, size_t config);

// Of shards that are not compressed.
std::string MdsIndexText(std::span<const MdsColumn> columns, int64_t most_bytes,
                         std::span<const MdsShard> shards);

}  // namespace hetero::source
