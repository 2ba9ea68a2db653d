#include "runtime/pipeline/plugin_operator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "hetero/operator_plugin.h"

namespace hetero::pipeline {
namespace {

// Written behind the result, to notice a plugin that writes more than it announced.
constexpr size_t kGuardBytes = 64;
constexpr uint8_t kGuard = 0xa5;

HeteroShape ShapeOf(const api::ImageShape& shape) {
  return {shape.height, shape.width, shape.channels};
}

class Message {
 public:
  HeteroMessage buffer() { return {text_.data(), text_.size()}; }
  std::string text() const { return text_[0] == '\0' ? "gave no reason" : text_.data(); }

 private:
  std::array<char, 512> text_{};
};

uint32_t NextNumber(void* state) { return static_cast<job::RandomStream*>(state)->NextUint32(); }

class LoadedOperator final : public Operator {
 public:
  LoadedOperator(const HeteroOperatorTable* table, void* instance, std::string name)
      : table_(table), instance_(instance), name_(std::move(name)) {}
  ~LoadedOperator() override { table_->destroy(instance_); }

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override {
    return ShapeFor(input, absl::StatusCode::kInvalidArgument);
  }

  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override {
    const auto shape = ShapeFor(in.shape, absl::StatusCode::kDataLoss);
    if (!shape.ok()) return shape.status();
    out->Reshape(*shape);
    const size_t size = out->bytes.size();
    out->bytes.resize(size + kGuardBytes);
    std::fill_n(out->bytes.begin() + std::ptrdiff_t(size), kGuardBytes, kGuard);
    const HeteroRandom numbers{&random, NextNumber};
    Message message;
    const int32_t code = table_->apply(instance_, ShapeOf(in.shape), in.data, &numbers,
                                       ShapeOf(*shape), out->bytes.data(), message.buffer());
    if (!std::all_of(out->bytes.begin() + std::ptrdiff_t(size), out->bytes.end(),
                     [](uint8_t v) { return v == kGuard; })) {
      return absl::InternalError(
          absl::StrCat("plugin operator ", name_, " wrote past its result of ", ToString(*shape)));
    }
    out->bytes.resize(size);
    return StatusOf(code, absl::StatusCode::kDataLoss, message);
  }

 private:
  // `bad` is what a picture that cannot be taken means: a wrong manifest or a bad sample.
  absl::Status StatusOf(int32_t code, absl::StatusCode bad, const Message& message) const {
    if (code == HETERO_OK) return absl::OkStatus();
    const std::string text = absl::StrCat("plugin operator ", name_, ": ", message.text());
    return code == HETERO_BAD_PICTURE ? absl::Status(bad, text) : absl::InternalError(text);
  }

  absl::StatusOr<api::ImageShape> ShapeFor(const api::ImageShape& in, absl::StatusCode bad) const {
    HeteroShape made{0, 0, 0};
    Message message;
    const int32_t code = table_->output_shape(instance_, ShapeOf(in), &made, message.buffer());
    if (absl::Status status = StatusOf(code, bad, message); !status.ok()) return status;
    const api::ImageShape shape{made.height, made.width, made.channels};
    const bool varies = in.height == 0 && shape.height == 0 && shape.width == 0;
    const bool fits =
        shape.height > 0 && shape.width > 0 && int64_t{shape.height} * shape.width <= kMaxPixels;
    if (shape.channels < 1 || shape.channels > 1024 || !(varies || fits)) {
      return absl::InternalError(absl::StrCat("plugin operator ", name_, " makes ", ToString(shape),
                                              " of ", ToString(in), ", which is no picture"));
    }
    return shape;
  }

  const HeteroOperatorTable* table_;
  void* instance_;
  std::string name_;
};

absl::StatusOr<const HeteroOperatorTable*> LoadTable(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(
        "cannot read ", path, "; the library must be at this path on every CPU and GPU worker"));
  }
  // Never closed: pictures may be in work on other threads, and a process has few plugins.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("cannot load ", path, ": ", dlerror()));
  }
  const auto function =
      reinterpret_cast<HeteroOperatorTableFunction>(dlsym(library, HETERO_OPERATOR_TABLE_SYMBOL));
  if (function == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no plugin: it does not export " HETERO_OPERATOR_TABLE_SYMBOL
                           "; write HETERO_PLUGIN_OPERATORS in one of its files"));
  }
  const HeteroOperatorTable* table = function();
  if (table == nullptr || table->abi_version != HETERO_OPERATOR_ABI_VERSION) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " was built for version ", table == nullptr ? 0 : table->abi_version,
        " of the plugin interface and this program takes version ", HETERO_OPERATOR_ABI_VERSION,
        "; build it again with this program's hetero/operator_plugin.h"));
  }
  return table;
}

}  // namespace

absl::StatusOr<Operators> MakePlugin(const api::OperatorSpec& spec,
                                     const OperatorContext& context) {
  const auto table = LoadTable(spec.path);
  if (!table.ok()) return table.status();
  std::vector<HeteroParameter> parameters;
  parameters.reserve(spec.parameters.size());
  for (const auto& [key, value] : spec.parameters) {
    parameters.push_back({key.c_str(), value.c_str()});
  }
  const int32_t training = context.split == job::Split::kTrain ? 1 : 0;
  void* instance = nullptr;
  Message message;
  const int32_t code = (*table)->create(spec.name.c_str(), parameters.data(), parameters.size(),
                                        training, &instance, message.buffer());
  if (code != HETERO_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.path, ", ", spec.name, ": ", message.text()));
  }
  return One<LoadedOperator>(*table, instance, spec.name);
}

}  // namespace hetero::pipeline
