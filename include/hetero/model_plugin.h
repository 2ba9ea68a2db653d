#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hetero/model.h"

// What a shared library offers whose models `spec.training.model: {plugin: PATH, name: NAME}`
// names.
//
//   #include <hetero/model_plugin.h>
//
//   class TinyNet : public hetero::train::Model { ... };
//
//   HETERO_MODEL_PLUGIN({"tiny_net"}, [](const hetero::train::PluginRequest& request) {
//     return std::make_shared<TinyNet>(request.channels, request.classes);
//   });
//
// A plugin is compiled against the LibTorch that the trainer runs with, by a compiler with the same
// C++ library; another version is refused when it is loaded. It does not link LibTorch statically.
// examples/plugin-model is a project of its own that builds one.
namespace hetero::train {

// Raised whenever anything in this header or in hetero/model.h changes its layout or meaning.
inline constexpr int32_t kModelPluginVersion = 1;

// The model to build.
struct PluginRequest {
  std::string name;  // one of the plugin's names
  int32_t classes = 0;
  int32_t height = 0, width = 0, channels = 0;  // of one picture
};

struct ModelPlugin {
  int32_t interface_version = kModelPluginVersion;
  const char* torch_version = TORCH_VERSION;
  std::vector<std::string> names;
  // Builds the model with initial weights drawn from LibTorch's default generator, which the caller
  // has seeded. An exception becomes the job's error.
  std::shared_ptr<Model> (*make)(const PluginRequest& request) = nullptr;
};

}  // namespace hetero::train

// The library's one exported function. Variadic because a list of names has commas.
#define HETERO_MODEL_PLUGIN(...)                                                                  \
  extern "C" __attribute__((visibility("default"))) const hetero::train::ModelPlugin*             \
  hetero_model_plugin() {                                                                         \
    static const hetero::train::ModelPlugin plugin = hetero::train::MakeModelPlugin(__VA_ARGS__); \
    return &plugin;                                                                               \
  }

namespace hetero::train {

inline ModelPlugin MakeModelPlugin(std::vector<std::string> names,
                                   std::shared_ptr<Model> (*make)(const PluginRequest&)) {
  ModelPlugin plugin;
  plugin.names = std::move(names);
  plugin.make = make;
  return plugin;
}

}  // namespace hetero::train
