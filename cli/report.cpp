#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/fetch_report.h"
#include "cli/job_view.h"
#include "cli/render.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

absl::Status NoFiles(const JobView& view) {
  const std::string uri = view.status.result ? view.status.result->report_uri : "";
  if (!uri.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "heterotrainingjob ", view.name_space, "/", view.name, " has its report at ", uri,
        ", with report.html beside it; read it there with your store's own tools"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "heterotrainingjob ", view.name_space, "/", view.name,
      " has no report on a volume of its own", view.output_uri.empty() ? " (no output.uri)" : "",
      "; kubectl hetero report ", view.name, " shows what status.result says"));
}

absl::Status Save(const ReportFiles& files, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make folder ", folder, ": ", error.message()));
  }
  HETERO_RETURN_IF_ERROR(base::WriteFileAtomically(folder + "/report.json", files.json));
  HETERO_RETURN_IF_ERROR(base::WriteFileAtomically(folder + "/report.html", files.html));
  Print(absl::StrCat(folder, "/report.json\n", folder, "/report.html\n"));
  return absl::OkStatus();
}

std::string ResultOf(const json& object) {
  const json status = object.value("status", json::object());
  const json result = status.is_object() ? status.value("result", json::object()) : json::object();
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<int> Report(Cluster& cluster, const Options& options, base::Clock& clock,
                           std::stop_token stop) {
  const auto object = cluster.Job(options.job);
  if (!object.ok()) return object.status();
  const auto view = ViewOf(*object);
  if (!view.ok()) return view.status();
  if (!view->status.finished()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "heterotrainingjob ", view->name_space, "/", view->name, " has not ended yet (",
        view->state(), "); kubectl hetero status ", view->name, " waits for its end"));
  }
  const bool on_volume = HasReportFiles(*view);
  if (options.save_folder.empty() && options.output == OutputFormat::kText) {
    Print(RenderReport(*view, {.width = Terminal::Available() ? Terminal::CurrentSize().columns : 0,
                               .colour = Terminal::Coloured()}));
    return 0;
  }
  const bool wants_files = !options.save_folder.empty() || options.output == OutputFormat::kHtml;
  if (!on_volume && wants_files) return NoFiles(*view);
  if (!on_volume) {
    Print(ResultOf(*object));
    return 0;
  }
  const auto files = FetchReport(cluster, options, *view, *object, clock, stop);
  if (!files.ok()) return files.status();
  if (!options.save_folder.empty()) {
    HETERO_RETURN_IF_ERROR(Save(*files, options.save_folder));
  } else {
    Print(options.output == OutputFormat::kHtml ? files->html : files->json);
  }
  return 0;
}

}  // namespace hetero::cli
