// Two operators as a plugin:
//   {op: Plugin, path: /opt/operators.so, name: Mosaic, parameters: {block: "8"}}
//   {op: Plugin, path: /opt/operators.so, name: SaltAndPepper, parameters: {probability: "0.02"}}
#include <hetero/operator_plugin.h>

#include <algorithm>

namespace {

using hetero::PluginPicture;
using hetero::PluginRandom;
using hetero::PluginRequest;
using hetero::PluginResult;

double NumberOf(const PluginRequest& request, const std::string& name, double low, double high) {
  const auto found = request.parameters.find(name);
  if (found == request.parameters.end()) throw std::invalid_argument("needs parameter " + name);
  size_t read = 0;
  double value = 0;
  try {
    value = std::stod(found->second, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read == 0 || read != found->second.size() || !(value >= low && value <= high)) {
    throw std::invalid_argument("parameter " + name + ": \"" + found->second + "\" must be from " +
                                std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

// Gives every square of `block` pixels its average colour.
class Mosaic final : public hetero::PluginOperator {
 public:
  explicit Mosaic(int32_t block) : block_(block) {}

  void Apply(const PluginPicture& in, PluginRandom&, const PluginResult& out) const override {
    for (int32_t top = 0; top < in.shape.height; top += block_) {
      for (int32_t left = 0; left < in.shape.width; left += block_) {
        for (int32_t c = 0; c < in.shape.channels; ++c) Fill(in, top, left, c, out);
      }
    }
  }

 private:
  void Fill(const PluginPicture& in, int32_t top, int32_t left, int32_t channel,
            const PluginResult& out) const {
    const int32_t bottom = std::min(top + block_, in.shape.height);
    const int32_t right = std::min(left + block_, in.shape.width);
    const auto index = [&](int32_t y, int32_t x) {
      return (size_t(y) * size_t(in.shape.width) + size_t(x)) * size_t(in.shape.channels) +
             size_t(channel);
    };
    uint64_t sum = 0;
    for (int32_t y = top; y < bottom; ++y) {
      for (int32_t x = left; x < right; ++x) sum += in.pixels[index(y, x)];
    }
    const uint64_t count = uint64_t(bottom - top) * uint64_t(right - left);
    const uint8_t mean = uint8_t((sum + count / 2) / count);
    for (int32_t y = top; y < bottom; ++y) {
      for (int32_t x = left; x < right; ++x) out.pixels[index(y, x)] = mean;
    }
  }

  int32_t block_;
};

// Makes some pixels black or white. For validation, where nothing is random, it copies.
class SaltAndPepper final : public hetero::PluginOperator {
 public:
  // A 32-bit random number below the threshold is a hit: no floating point per pixel.
  SaltAndPepper(double probability, bool training)
      : threshold_(training ? uint64_t(probability * 4294967296.0) : 0) {}

  void Apply(const PluginPicture& in, PluginRandom& random,
             const PluginResult& out) const override {
    const size_t channels = size_t(in.shape.channels);
    const size_t size = size_t(in.shape.height) * size_t(in.shape.width) * channels;
    std::copy_n(in.pixels, size, out.pixels);
    if (threshold_ == 0) return;
    for (size_t i = 0; i < size; i += channels) {
      if (random.NextUint32() >= threshold_) continue;
      std::fill_n(out.pixels + i, channels, random.NextUint32() % 2 == 0 ? 0 : 255);
    }
  }

 private:
  uint64_t threshold_;
};

std::unique_ptr<hetero::PluginOperator> Make(const PluginRequest& request) {
  if (request.name == "Mosaic") {
    return std::make_unique<Mosaic>(int32_t(NumberOf(request, "block", 1, 4096)));
  }
  if (request.name == "SaltAndPepper") {
    return std::make_unique<SaltAndPepper>(NumberOf(request, "probability", 0, 1),
                                           request.training);
  }
  return nullptr;
}

}  // namespace

HETERO_PLUGIN_OPERATORS(Make)
