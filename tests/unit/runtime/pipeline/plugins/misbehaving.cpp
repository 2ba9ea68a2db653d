// A plugin whose operators do what one must not do.
#include <hetero/operator_plugin.h>

namespace {

struct Throws final : hetero::PluginOperator {
  void Apply(const hetero::PluginPicture&, hetero::PluginRandom&,
             const hetero::PluginResult&) const override {
    throw std::runtime_error("the disk is on fire");
  }
};

struct ThrowsAnInt final : hetero::PluginOperator {
  void Apply(const hetero::PluginPicture&, hetero::PluginRandom&,
             const hetero::PluginResult&) const override {
    throw 7;
  }
};

struct RefusesPictures final : hetero::PluginOperator {
  void Apply(const hetero::PluginPicture&, hetero::PluginRandom&,
             const hetero::PluginResult&) const override {
    throw hetero::BadPicture("too dark");
  }
};

struct MakesNothing final : hetero::PluginOperator {
  HeteroShape OutputShape(const HeteroShape& in) const override {
    return {0, in.width, in.channels};
  }
  void Apply(const hetero::PluginPicture&, hetero::PluginRandom&,
             const hetero::PluginResult&) const override {}
};

// Announces another shape for each picture than for the pipeline.
struct ChangesItsMind final : hetero::PluginOperator {
  HeteroShape OutputShape(const HeteroShape& in) const override {
    ++asked;
    return {in.height + asked, in.width, in.channels};
  }
  void Apply(const hetero::PluginPicture&, hetero::PluginRandom&,
             const hetero::PluginResult&) const override {}
  mutable int asked = 0;
};

struct WritesTooMuch final : hetero::PluginOperator {
  void Apply(const hetero::PluginPicture& in, hetero::PluginRandom&,
             const hetero::PluginResult& out) const override {
    std::memset(out.pixels, 1,
                size_t(in.shape.height) * size_t(in.shape.width) * size_t(in.shape.channels) + 1);
  }
};

std::unique_ptr<hetero::PluginOperator> Make(const hetero::PluginRequest& request) {
  if (request.name == "Throws") return std::make_unique<Throws>();
  if (request.name == "ThrowsAnInt") return std::make_unique<ThrowsAnInt>();
  if (request.name == "RefusesPictures") return std::make_unique<RefusesPictures>();
  if (request.name == "MakesNothing") return std::make_unique<MakesNothing>();
  if (request.name == "ChangesItsMind") return std::make_unique<ChangesItsMind>();
  if (request.name == "WritesTooMuch") return std::make_unique<WritesTooMuch>();
  return nullptr;
}

}  // namespace

HETERO_PLUGIN_OPERATORS(Make)
