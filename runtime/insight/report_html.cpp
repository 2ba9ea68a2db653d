#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/insight/html_sections.h"
#include "runtime/insight/html_text.h"
#include "runtime/insight/page_style.h"
#include "runtime/insight/report.h"

namespace hetero::insight {

std::string ToHtml(const Report& report) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>",
      EscapeHtml(absl::StrCat(report.job, ": ", report.state)), "</title>\n<style>", kPageStyle,
      "</style>\n</head>\n<body>\n<main>\n", HeaderHtml(report), FindingsHtml(report),
      StepTimeHtml(report), TimeLinesHtml(report), BatchLivesHtml(report), ResourcesHtml(report),
      PredictionsHtml(report), PlacementHtml(report), LossHtml(report), StepSecondsHtml(report),
      WorkersHtml(report), EvaluationsHtml(report), StreamHtml(report), ReportedHtml(report),
      AttemptsHtml(report), FaultsHtml(report), DisruptionsHtml(report), BadSamplesHtml(report),
      ConfigurationHtml(report), VersionsHtml(report),
      "<footer>The same figures for programs: <a href=\"report.json\">report.json</a></footer>\n",
      "</main>\n</body>\n</html>\n");
}

}  // namespace hetero::insight
