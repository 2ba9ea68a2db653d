#include "runtime/train/input.h"

namespace hetero::train {

InputConverter::InputConverter(const pipeline::TensorConversion& conversion, int32_t channels,
                               bool channels_last)
    : channels_last_(channels_last),
      identity_(!conversion.unit_scale && conversion.mean.empty() && conversion.std.empty()) {
  // One multiplication and one addition per value: (x * unit - mean) / std.
  const double unit = conversion.unit_scale ? 1.0 / 255 : 1.0;
  std::vector<float> scale, shift;
  for (int32_t c = 0; c < channels; ++c) {
    const auto at = [c](const std::vector<float>& values, double otherwise) {
      if (values.empty()) return otherwise;
      return static_cast<double>(values[values.size() == 1 ? 0 : static_cast<size_t>(c)]);
    };
    const double deviation = at(conversion.std, 1);
    scale.push_back(static_cast<float>(unit / deviation));
    shift.push_back(static_cast<float>(-at(conversion.mean, 0) / deviation));
  }
  scale_ = torch::tensor(scale);
  shift_ = torch::tensor(shift);
}

torch::Tensor InputConverter::Images(const feed::Batch& batch, int64_t first, int64_t count) const {
  torch::NoGradGuard no_grad;
  const api::ImageShape& shape = batch.shape;
  const int64_t sample_bytes = int64_t{shape.height} * shape.width * shape.channels;
  // from_blob wants mutable bytes; they are only read.
  auto* bytes = const_cast<uint8_t*>(batch.images.data()) + first * sample_bytes;
  torch::Tensor values =
      torch::from_blob(bytes, {count, shape.height, shape.width, shape.channels}, torch::kUInt8)
          .to(torch::kFloat32);
  if (!identity_) values.mul_(scale_).add_(shift_);
  values = values.permute({0, 3, 1, 2});
  return channels_last_ ? values : values.contiguous();
}

torch::Tensor InputConverter::Labels(const feed::Batch& batch, int64_t first, int64_t count) const {
  auto* labels = const_cast<int32_t*>(batch.labels.data()) + first;
  return torch::from_blob(labels, {count}, torch::kInt32).to(torch::kInt64);
}

}  // namespace hetero::train
