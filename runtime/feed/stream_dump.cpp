#include "runtime/feed/stream_dump.h"

#include <filesystem>
#include <map>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/feed/safetensors.h"

namespace hetero::feed {
namespace {

TensorType TensorTypeOf(job::FieldType type) {
  switch (type) {
    case job::FieldType::kInt64:
      return TensorType::kInt64;
    case job::FieldType::kFloat32:
      return TensorType::kFloat32;
    case job::FieldType::kUint8:
      return TensorType::kUint8;
  }
  __builtin_unreachable();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StreamDump>> StreamDump::Create(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot create ", folder, " for --dump-stream: ", error.message()));
  }
  return std::unique_ptr<StreamDump>(new StreamDump(folder));
}

absl::Status StreamDump::Write(const Batch& batch) const {
  const Ticket& ticket = batch.ticket;
  const int64_t count = batch.count();
  if (ticket.split != job::Split::kTrain || count == 0) return absl::OkStatus();
  std::vector<int64_t> slots(static_cast<size_t>(count));
  std::iota(slots.begin(), slots.end(), ticket.slots.first);
  std::vector<int64_t> image_shape = {count};
  for (const int32_t size : batch.image_shape()) image_shape.push_back(size);
  std::vector<TensorView> tensors = {
      {"images", TensorType::kUint8, std::move(image_shape), batch.images.data()},
      {"sample_ids", TensorType::kInt64, {count}, batch.sample_ids.data()},
      {"slots", TensorType::kInt64, {count}, slots.data()}};
  if (!batch.fields) {
    tensors.push_back({"labels", TensorType::kInt32, {count}, batch.labels.data()});
  } else {
    for (const FieldTensor& field : *batch.fields) {
      std::vector<int64_t> shape = {count};
      shape.insert(shape.end(), field.spec.shape.begin(), field.spec.shape.end());
      tensors.push_back(
          {field.spec.name, TensorTypeOf(field.spec.type), std::move(shape), field.bytes.data()});
    }
  }
  const std::map<std::string, std::string> metadata = {{"epoch", absl::StrCat(ticket.epoch)},
                                                       {"step", absl::StrCat(ticket.step)},
                                                       {"rank", absl::StrCat(ticket.rank)}};
  const std::string path =
      absl::StrFormat("%s/rank%d-step%06d.safetensors", folder_, ticket.rank, ticket.step);
  return WriteSafetensors(path, tensors, metadata);
}

}  // namespace hetero::feed
