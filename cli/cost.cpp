#include <iostream>
#include <vector>

#include "cli/commands.h"
#include "cli/cost_table.h"
#include "cli/job_view.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr int kPage = 500;

bool PrintJson(const json& object) {
  return Print(object.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace

absl::StatusOr<int> Cost(Cluster& cluster, const Options& options, base::Clock& clock,
                         std::stop_token stop) {
  const Style style{.width = Terminal::Available() ? Terminal::CurrentSize().columns : 0,
                    .colour = Terminal::Coloured()};
  const bool as_json = options.output == OutputFormat::kJson;
  if (!options.job.empty()) {
    const auto object = cluster.Job(options.job);
    if (!object.ok()) return object.status();
    const auto view = ViewOf(*object);
    if (!view.ok()) return view.status();
    const bool read =
        as_json ? PrintJson(CostJson(*view)) : Print(CostOfJob(*view, clock.WallNow(), style));
    return read ? 0 : kExitOutputGone;
  }
  const std::string name_space = options.all_namespaces ? "" : cluster.name_space();
  std::vector<JobView> views;
  kube::ListOptions page{.label_selector = options.selector, .limit = kPage};
  do {
    auto list = cluster.client().List(kJobs, name_space, page, stop);
    if (!list.ok()) return Explain(list.status(), "list", {name_space, ""});
    for (const json& item : list->items) {
      auto view = ViewOf(item);
      if (!view.ok()) return view.status();
      views.push_back(*std::move(view));
    }
    page.continue_token = list->continue_token;
  } while (!page.continue_token.empty());
  if (as_json) return PrintJson(CostsJson(views)) ? 0 : kExitOutputGone;
  if (views.empty()) {
    std::cerr << "No heterotrainingjobs"
              << (name_space.empty() ? "" : " in namespace " + name_space) << "\n";
    return 0;
  }
  return Print(CostOfJobs(views, {.style = style, .namespaces = options.all_namespaces}))
             ? 0
             : kExitOutputGone;
}

}  // namespace hetero::cli
