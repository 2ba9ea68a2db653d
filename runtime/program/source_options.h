#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

namespace CLI {
class App;
}

// Options of commands that read a dataset without a manifest.
namespace hetero::commands {

// Declares --image, --label and so on, what a manifest's dataset.fields and dataset.label say.
// `format` is the name of the option for dataset.format. Both outlive the command.
void AddSourceOptions(CLI::App* command, const char* format, api::DatasetSource* source,
                      api::Label* label);

// kInvalidArgument: a label that the manifest's own check would refuse.
absl::Status CheckLabelOptions(const api::Label& label);

// Declares --storage, which names a manifest for LoadStorage(). `file` outlives the command.
void AddStorageOption(CLI::App* command, std::string* file);

// How stores are reached by the manifest `file` (spec.storage) on this machine, where secretRefs
// are ignored; as without a manifest where `file` is empty. Where it is none or has errors, they
// are printed to standard error and nothing is returned; the caller exits with kExitUsage.
std::optional<std::vector<api::StorageAccess>> LoadStorage(const std::string& file);

// A path of this machine is taken for the folder that it is.
std::string UriOf(const std::string& given);

}  // namespace hetero::commands
