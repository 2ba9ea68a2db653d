#pragma once

#include <string>

#include "runtime/insight/report.h"

// Parts of the report page, each a complete <header> or <section>, well-formed as XML. Nothing to
// show gives a section with a sentence that says so. Pure.
namespace hetero::insight {

std::string HeaderHtml(const Report& report);     // job, state, reason, key figures
std::string FindingsHtml(const Report& report);   // what to change; nothing without any
std::string StepTimeHtml(const Report& report);   // rank 0's time by phase
std::string TimeLinesHtml(const Report& report);  // of all ranks; nothing without any
std::string PredictionsHtml(const Report& report);
std::string PlacementHtml(const Report& report);
std::string WaitCausesHtml(const Report& report);  // a paragraph, not a section; may be empty
std::string BatchLivesHtml(const Report& report);  // nothing without any
std::string ResourcesHtml(const Report& report);   // nothing without any
std::string LossHtml(const Report& report);
std::string StepSecondsHtml(const Report& report);
std::string EvaluationsHtml(const Report& report);
std::string StreamHtml(const Report& report);    // what was consumed, digest, cost
std::string ReportedHtml(const Report& report);  // nothing without any
std::string WorkersHtml(const Report& report);
std::string AttemptsHtml(const Report& report);  // nothing for a single one
std::string FaultsHtml(const Report& report);
std::string DisruptionsHtml(const Report& report);  // empty: there was none
std::string BadSamplesHtml(const Report& report);
std::string ConfigurationHtml(const Report& report);
std::string VersionsHtml(const Report& report);

}  // namespace hetero::insight
