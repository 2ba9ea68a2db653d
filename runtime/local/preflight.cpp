#include "runtime/local/preflight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/unsupported_fields.h"
#include "runtime/feed/placement.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/local/gpus.h"
#include "runtime/process/python.h"

namespace hetero::local {
namespace {

void CheckData(const api::HeteroTrainingJob& job, std::vector<api::FieldError>* errors) {
  absl::StatusOr<std::unique_ptr<feed::SampleProducer>> producer =
      feed::SampleProducer::Create(job);
  if (!producer.ok()) {
    // Messages from the pipeline begin with their field, those from the datasets with a path.
    const std::string message(producer.status().message());
    const bool has_field = message.starts_with("spec.");
    const size_t space = message.find(' ');
    errors->push_back(
        {has_field ? message.substr(0, space) : "spec.dataset",
         has_field && space != std::string::npos ? message.substr(space + 1) : message});
    return;
  }
  if (const absl::Status placed = feed::AllowedCuts(job.spec.pipeline, **producer).status();
      !placed.ok()) {
    const std::string message(placed.message());
    const size_t space = message.find(' ');
    errors->push_back({message.substr(0, space), message.substr(space + 1)});
  }
  const int64_t samples = (*producer)->dataset(job::Split::kTrain).size();
  const api::Training& training = job.spec.training;
  const int64_t global_batch = int64_t{training.batch_size_per_worker} * job.spec.world_size() *
                               training.gradient_accumulation_steps;
  if (global_batch > samples) {
    errors->push_back({"spec.training.batchSizePerWorker",
                       absl::StrCat("one step takes ", training.batch_size_per_worker, " x ",
                                    job.spec.world_size(), " ranks = ", global_batch,
                                    " samples, but the dataset has ", samples,
                                    "; lower it to at most ", samples / job.spec.world_size())});
  }
}

}  // namespace

std::vector<api::FieldError> CheckLocalJob(const api::HeteroTrainingJob& job, bool input_only,
                                           const std::vector<std::string>& usable_gpus) {
  std::vector<api::FieldError> errors = api::UnsupportedFields(job);
  if (!input_only) {
    for (api::FieldError& error : CheckGpus(job, usable_gpus)) errors.push_back(std::move(error));
  }
  if (errors.empty()) CheckData(job, &errors);
  return errors;
}

std::vector<api::FieldError> CheckPython(const api::HeteroTrainingJob& job,
                                         const std::vector<std::string>& folders,
                                         const std::stop_token& stop) {
  const absl::Status started = process::StartPython(job.spec, folders, stop).status();
  if (started.ok() || absl::IsCancelled(started)) return {};  // who stopped it will see
  const std::string message(started.message());
  const size_t space = message.find(' ');
  if (!message.starts_with("spec.")) return {{"spec.pipeline", message}};
  return {{message.substr(0, space), message.substr(space + 1)}};
}

std::string WorkingDirectory(const api::HeteroTrainingJob& job, const std::string& manifest) {
  const std::string& given =
      job.spec.training.script ? job.spec.training.script->working_directory : "";
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(manifest, error).parent_path();
  return given.empty() ? folder.string() : (folder / given).lexically_normal().string();
}

std::vector<api::FieldError> CheckScript(const api::Script& script, const std::string& folder) {
  constexpr char kPath[] = "spec.training.script";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return {{absl::StrCat(kPath, ".workingDirectory"),
             absl::StrCat(folder, " is ", error ? error.message() : "no folder",
                          "; give an absolute one, one relative to the manifest's folder, or none "
                          "(--set training.script.workingDirectory=)")}};
  }
  const std::string& program = script.command.front();
  const auto runs = [](const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) {
    const std::filesystem::path path = (std::filesystem::path(folder) / program).lexically_normal();
    if (runs(path)) return {};
    const bool there = std::filesystem::exists(path, error);
    return {
        {absl::StrCat(kPath, ".command[0]"),
         absl::StrCat(path.string(), there ? " is no program that may be run" : " does not exist",
                      program.ends_with(".py") ? "; for a script write [python3, FILE]" : "")}};
  }
  const char* search = getenv("PATH");
  const std::vector<std::string> entries = absl::StrSplit(search == nullptr ? "" : search, ':');
  for (const std::string& entry : entries) {
    if (runs(std::filesystem::path(entry.empty() ? folder : entry) / program)) return {};
  }
  return {{absl::StrCat(kPath, ".command[0]"),
           absl::StrCat("there is no program '", program,
                        "' in PATH; activate the environment that has it, or give its path")}};
}

absl::Status CheckProgram(const std::string& path, const std::string& remedy) {
  if (access(path.c_str(), X_OK) == 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno), "; ", remedy));
}

}  // namespace hetero::local
