#include "runtime/train/models/plugin_model.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "hetero/model_plugin.h"

namespace hetero::train {
namespace {

absl::Status RefusePlugin(const std::string& path, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("spec.training.model.plugin: ", path, ": ", reason));
}

absl::StatusOr<const ModelPlugin*> Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return RefusePlugin(path, absl::StrCat("cannot be loaded: ", dlerror()));
  using Entry = const ModelPlugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "hetero_model_plugin"));
  if (entry == nullptr) {
    return RefusePlugin(path,
                        "does not export hetero_model_plugin; use HETERO_MODEL_PLUGIN of "
                        "hetero/model_plugin.h");
  }
  // The first two members keep their place in every version.
  const ModelPlugin* plugin = entry();
  if (plugin->interface_version != kModelPluginVersion) {
    return RefusePlugin(path, absl::StrCat("was built for version ", plugin->interface_version,
                                           " of the interface, this trainer has ",
                                           kModelPluginVersion, "; build it again"));
  }
  if (std::string_view(plugin->torch_version) != TORCH_VERSION) {
    return RefusePlugin(path,
                        absl::StrCat("was built with LibTorch ", plugin->torch_version,
                                     ", this trainer runs ", TORCH_VERSION, "; build it again"));
  }
  return plugin;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Model>> MakePluginModel(const std::string& path,
                                                       const ModelOptions& options) {
  absl::StatusOr<const ModelPlugin*> plugin = Load(path);
  if (!plugin.ok()) return plugin.status();
  const std::vector<std::string>& names = (*plugin)->names;
  if (std::find(names.begin(), names.end(), options.name) == names.end()) {
    return RefusePlugin(path, absl::StrCat("has no model \"", options.name, "\"; it has ",
                                           absl::StrJoin(names, ", ")));
  }
  try {
    std::shared_ptr<Model> model = (*plugin)->make({.name = options.name,
                                                    .classes = options.classes,
                                                    .height = options.input.height,
                                                    .width = options.input.width,
                                                    .channels = options.input.channels});
    if (model == nullptr)
      return RefusePlugin(path, absl::StrCat(options.name, " came out as null"));
    return model;
  } catch (const std::exception& error) {
    return RefusePlugin(path, absl::StrCat(options.name, " cannot be built: ", error.what()));
  }
}

}  // namespace hetero::train
