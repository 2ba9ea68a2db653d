#include "runtime/program/source_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/enums.h"
#include "runtime/local/ignored_fields.h"
#include "runtime/program/load_manifest.h"
#include "runtime/program/one_of.h"

namespace hetero::commands {
namespace {

template <typename Type>
std::map<std::string, Type> NamesOf() {
  std::map<std::string, Type> names;
  for (const auto& [value, name] : api::EnumNames<Type>::Values()) names[std::string(name)] = value;
  return names;
}

}  // namespace

void AddSourceOptions(CLI::App* command, const char* format, api::DatasetSource* source,
                      api::Label* label) {
  command->add_option(format, source->format, "dataset.format; default: told by what is found")
      ->transform(OneOf(NamesOf<api::DatasetFormat>()));
  command->add_option("--image", source->fields.image, "dataset.fields.image");
  command->add_option("--label", source->fields.label.field, "dataset.fields.label.field");
  command->add_option("--label-offset", source->fields.label.offset, "dataset.fields.label.offset");
  command->add_option("--mask", source->fields.mask, "dataset.fields.mask");
  command->add_option("--label-type", label->type, "dataset.label.type")
      ->transform(OneOf(NamesOf<api::LabelType>()));
  command->add_option("--label-field", label->field, "dataset.label.field");
  command->add_option("--label-shape", label->shape, "dataset.label.shape, as 2,3")->delimiter(',');
}

absl::Status CheckLabelOptions(const api::Label& label) {
  if (!label.numbers() && (!label.shape.empty() || !label.field.empty())) {
    return absl::InvalidArgumentError(
        "--label-shape and --label-field are of labels of type Int64 and Float32; give "
        "--label-type, or leave them out");
  }
  int64_t numbers = 1;
  for (const int32_t dimension : label.shape) {
    numbers *= dimension;
    if (dimension >= 1 && numbers <= api::kMaxLabelNumbers) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--label-shape: ", absl::StrJoin(label.shape, ","), " is no shape of 1 to ",
                     api::kMaxLabelNumbers, " numbers"));
  }
  return absl::OkStatus();
}

void AddStorageOption(CLI::App* command, std::string* file) {
  command
      ->add_option("--storage", *file,
                   "A job's manifest, whose spec.storage says how stores are reached; keys are "
                   "found as without secretRef")
      ->type_name("JOB.yaml");
}

std::optional<std::vector<api::StorageAccess>> LoadStorage(const std::string& file) {
  if (file.empty()) return std::vector<api::StorageAccess>();
  std::optional<api::HeteroTrainingJob> job = LoadManifest(file, {});
  if (!job) return std::nullopt;
  return local::WithoutSecrets(*std::move(job)).spec.storage;
}

std::string UriOf(const std::string& given) {
  if (given.find("://") != std::string::npos) return given;
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::absolute(given, ignored);
  return "file://" + path.lexically_normal().string();
}

}  // namespace hetero::commands
