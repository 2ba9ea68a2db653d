#include "runtime/train/device/input.h"

namespace hetero::train {

InputConverter::InputConverter(const pipeline::TensorConversion& conversion, int32_t channels,
                               bool channels_last, Device& device)
    : device_(device) {
  format_.channels_last = channels_last;
  format_.identity = !conversion.unit_scale && conversion.mean.empty() && conversion.std.empty();
  // One multiplication and one addition per value: (x * unit - mean) / std.
  const double unit = conversion.unit_scale ? 1.0 / 255 : 1.0;
  for (int32_t c = 0; c < channels; ++c) {
    const auto at = [c](const std::vector<float>& values, double otherwise) {
      if (values.empty()) return otherwise;
      return static_cast<double>(values[values.size() == 1 ? 0 : static_cast<size_t>(c)]);
    };
    const double deviation = at(conversion.std, 1);
    format_.scale.push_back(static_cast<float>(unit / deviation));
    format_.shift.push_back(static_cast<float>(-at(conversion.mean, 0) / deviation));
  }
}

torch::Tensor InputConverter::Images(const feed::Batch& batch, int64_t first, int64_t count) const {
  const api::ImageShape& shape = batch.shape;
  const int64_t sample_bytes = int64_t{shape.height} * shape.width * shape.channels;
  return device_.Convert(batch.images.data() + first * sample_bytes, count, shape, format_);
}

torch::Tensor InputConverter::Labels(const feed::Batch& batch, int64_t first, int64_t count) const {
  // from_blob wants mutable numbers; they are only read.
  auto* labels = const_cast<int32_t*>(batch.labels.data()) + first;
  return torch::from_blob(labels, {count}, torch::kInt32).to(torch::kInt64).to(place());
}

}  // namespace hetero::train
