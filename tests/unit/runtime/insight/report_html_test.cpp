#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "runtime/insight/html_text.h"
#include "runtime/insight/report.h"
#include "tests/unit/runtime/insight/html_flaw.h"
#include "tests/unit/runtime/insight/sample_report.h"

namespace hetero::insight {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FirstFlaw, FindsWhatItIsMeantToFind) {
  EXPECT_EQ(FirstFlaw("<!DOCTYPE html>\n<p>a &lt; b<br/></p>"), "");
  EXPECT_NE(FirstFlaw("<!DOCTYPE html><p>a & b</p>"), "");
  EXPECT_NE(FirstFlaw("<!DOCTYPE html><p>a < b</p>"), "");
  EXPECT_NE(FirstFlaw("<!DOCTYPE html><p><b></p></b>"), "");
  EXPECT_NE(FirstFlaw("<!DOCTYPE html><p>"), "");
}

TEST(ReportHtml, IsWellFormed) {
  EXPECT_EQ(FirstFlaw(ToHtml(FullReport())), "");
  EXPECT_EQ(FirstFlaw(ToHtml(Report{})), "");
}

TEST(ReportHtml, IsWellFormedWhateverTheNamesAre) {
  const std::string hostile = "</script><b a='\"'>&\x01\xFF\n";
  Report report = FullReport();
  report.job = report.state = report.message = hostile;
  report.stream_digest = report.verdict = report.checkpoint_uri = hostile;
  report.workers[0].name = report.workers[0].role = report.workers[0].node = hostile;
  report.resources[0].member = report.batch_lives[0].span = hostile;
  report.faults[0].what = report.faults[0].time = hostile;
  report.bad_sample_list[0].reason = hostile;
  report.config_json = hostile;
  report.findings[0] = {.rule = hostile,
                        .message = hostile,
                        .remedy = hostile,
                        .field = hostile,
                        .member = hostile,
                        .since = hostile};
  report.cpu_seconds_per_sample[hostile] = 1;
  report.versions[hostile] = hostile;
  const std::string html = ToHtml(report);
  EXPECT_EQ(FirstFlaw(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<b a=")));
}

TEST(ReportHtml, NeedsNothingFromOutside) {
  const std::string html = ToHtml(FullReport());
  for (const char* forbidden : {"<script", "http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(forbidden)));
  }
}

TEST(ReportHtml, ShowsTheFigures) {
  const std::string html = ToHtml(FullReport());
  for (const char* expected :
       {"quickstart", "Succeeded", "91.3 %", "00112233445566778899aabbccddeeff", "data wait",
        "42.1 %", "cpu-1 was lost: exit by signal 9", "premature end of &lt;JPEG&gt; file",
        "libtorch", "prefers-color-scheme: dark"}) {
    EXPECT_THAT(html, HasSubstr(expected));
  }
}

TEST(ReportHtml, SaysWhatToChange) {
  Report report = FullReport();
  EXPECT_THAT(ToHtml(report),
              HasSubstr("<h2>What to change</h2>\n<ol>\n"
                        "<li><p>cpu-1 takes 3.0 times as long for a batch as the others</p>"
                        "<p><b>look at the node of cpu-1, or set roles.cpu.replicas to 3</b></p>"
                        "<p class=\"note\">SlowWorker | cpu-1 | roles.cpu.replicas | "
                        "2.50 s of training, $0.00110 | since 2026-03-01T12:00:05Z</p></li>\n"
                        "<li><p>training stood still for 500 ms while a checkpoint was written</p>"
                        "<p class=\"note\">CheckpointStall | 500 ms of training | "
                        "not at the end any more</p></li>\n</ol>\n"));
  report.findings.clear();
  EXPECT_THAT(ToHtml(report), Not(HasSubstr("What to change")));
}

TEST(ReportHtml, SaysWhatStoresWereAskedFor) {
  Report report = FullReport();
  EXPECT_THAT(ToHtml(report), Not(HasSubstr("object stores")));
  report.storage =
      ReportStorage{.requests = 1234, .retries = 2, .bytes = 5'000'000, .dollars = 0.25};
  EXPECT_THAT(ToHtml(report),
              HasSubstr("<dt>object stores</dt><dd>1,234 requests, 2 of them again; "
                        "5.00 MB; $0.250</dd>"));
  report.storage->orders = {
      {.shuffle = "Full", .requests = 1'000, .bytes = 5'000'000, .dollars = 0.25},
      {.shuffle = "Block of 64", .requests = 16, .bytes = {}, .dollars = {}}};
  EXPECT_THAT(ToHtml(report),
              HasSubstr("<dt>samples in order Full</dt><dd>1,000 requests; 5.00 MB; $0.250</dd>"));
  EXPECT_THAT(ToHtml(report),
              HasSubstr("<dt>samples in order Block of 64 (not used)</dt><dd>16 requests</dd>"));
  EXPECT_EQ(FirstFlaw(ToHtml(report)), "");
}

TEST(ReportHtml, ShowsWhatWasUsedAndTheLifeOfABatch) {
  const std::string html = ToHtml(FullReport());
  EXPECT_THAT(html, HasSubstr("The life of a batch"));
  EXPECT_THAT(html, HasSubstr("medians of 10 batches"));
  EXPECT_THAT(html, HasSubstr("flex:50000.0000 0 0;background:var(--p-forward)"));
  EXPECT_THAT(html, HasSubstr("What the processes used"));
  // 4 of the 28 seconds of two cores.
  EXPECT_THAT(html, HasSubstr("title=\"at 15.0 s: 0.286 of 2.00 cores\""));
  Report report = FullReport();
  report.resources.clear();
  report.batch_lives.clear();
  EXPECT_THAT(ToHtml(report), Not(HasSubstr("The life of a batch")));
  EXPECT_THAT(ToHtml(report), Not(HasSubstr("What the processes used")));
}

TEST(ReportHtml, GivesTheReasonOfTheState) {
  Report report = FullReport();
  EXPECT_THAT(ToHtml(report), Not(HasSubstr("class=\"reason")));
  report.state = "Failed";
  report.message = "gpu-0 ran out of memory";
  EXPECT_THAT(ToHtml(report), HasSubstr("<p class=\"reason Failed\">gpu-0 ran out of memory</p>"));
}

TEST(ReportHtml, BarsCompareWorkersOfOneRole) {
  Report report = FullReport();
  report.workers[0].cpu_seconds = 20;  // both of role cpu
  report.workers[1].cpu_seconds = 5;
  report.workers[2].cpu_seconds = 30;
  const std::string html = ToHtml(report);
  EXPECT_THAT(html, HasSubstr("style=\"--share:100.0%\">20.0 s</td>"));
  EXPECT_THAT(html, HasSubstr("style=\"--share:25.0%\">5.00 s</td>"));
  EXPECT_THAT(html, HasSubstr("style=\"--share:100.0%\">30.0 s</td>"));
}

TEST(ReportHtml, SaysSoWhenThereIsNothingToShow) {
  const std::string html = ToHtml(Report{});
  for (const char* sentence :
       {"No step was timed in this run.", "there is no loss", "No worker registered",
        "No evaluation took place.", "No fault was recorded.", "No bad sample was met."}) {
    EXPECT_THAT(html, HasSubstr(sentence));
  }
  EXPECT_THAT(html, Not(HasSubstr("<svg")));
}

Report ScriptReport() {
  Report report = FullReport();
  report.script_restarts = 2;
  report.reported = {{"perplexity <x>", 12.5}};
  report.stream_digest.reset();
  report.digest_problem = "the state knows no digest";
  for (ReportEvaluation& evaluation : report.evaluations) {
    evaluation.loss = std::numeric_limits<double>::quiet_NaN();
    evaluation.samples = 0;
  }
  return report;
}

TEST(ReportHtml, ShowsWhatScriptsReport) {
  const std::string html = ToHtml(ScriptReport());
  EXPECT_EQ(FirstFlaw(html), "");
  EXPECT_THAT(html, HasSubstr(", 2 restarts of the scripts</p>"));
  EXPECT_THAT(html, HasSubstr("<td>perplexity &lt;x&gt;</td><td class=\"num\">12.5</td>"));
  EXPECT_THAT(html, HasSubstr("stream digest not proven: the state knows no digest"));
  EXPECT_THAT(html, Not(HasSubstr("0 validation samples")));
  EXPECT_THAT(ToHtml(FullReport()), Not(HasSubstr("Reported by the script")));
}

// A script may end without a step.
TEST(ReportHtml, IsWholeWithoutAStep) {
  Report report;
  report.job = "early";
  report.state = "Succeeded";
  report.message = "ended after 0 of 40 steps";
  report.script_restarts = 0;
  report.epochs = report.steps = report.samples_consumed = 0;
  report.workers.push_back({.name = "gpu-0", .role = "gpu"});
  const std::string html = ToHtml(report);
  EXPECT_EQ(FirstFlaw(html), "");
  EXPECT_THAT(html, HasSubstr("<p class=\"reason Succeeded\">ended after 0 of 40 steps</p>"));
  EXPECT_FALSE(std::regex_search(html, std::regex("[:\" ]-?(nan|inf)[%;\" <]")));
  EXPECT_THAT(html, Not(HasSubstr("<svg")));
}

TEST(ReportHtml, ShowsTimeThatNoPhaseClaims) {
  Report report = FullReport();
  report.train_seconds = 57;
  EXPECT_THAT(ToHtml(report), HasSubstr("not attributed</span><span>28.5 s</span>"));
}

TEST(ReportHtml, SurvivesNumbersThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Report report = FullReport();
  report.loss = report.accuracy = report.wall_seconds = nan;
  report.phase_seconds->forward = nan;
  for (ReportLoss& point : report.loss_curve) point.loss = point.seconds_per_step = nan;
  report.evaluations[0].accuracy = nan;
  const std::string html = ToHtml(report);
  EXPECT_EQ(FirstFlaw(html), "");
  EXPECT_FALSE(std::regex_search(html, std::regex("[:\" ]-?(nan|inf)[%;\" <]")));
}

TEST(EscapeHtml, ReplacesWhatXmlForbids) {
  EXPECT_EQ(EscapeHtml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeHtml("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x90\x88"),
            "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x90\x88");
  EXPECT_EQ(EscapeHtml(std::string("\0\x1B", 2)), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(EscapeHtml("\xC3"), "\xEF\xBF\xBD");                          // cut off
  EXPECT_EQ(EscapeHtml("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");          // overlong
  EXPECT_EQ(EscapeHtml("\xED\xA0\x80").find("\xED"), std::string::npos);  // surrogate
}

TEST(EscapeHtml, RefusesTheTwoNoncharactersOfThreeBytesOnly) {
  const std::string refused = "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
  EXPECT_EQ(EscapeHtml("\xEF\xBF\xBE"), refused);  // U+FFFE
  EXPECT_EQ(EscapeHtml("\xEF\xBF\xBF"), refused);  // U+FFFF
  // Those that share a byte or two with them: U+FFFD, U+FFC2, U+FF01, U+FFBE, U+4FFE, U+4E3E.
  for (const char* allowed : {"\xEF\xBF\xBD", "\xEF\xBF\x82", "\xEF\xBC\x81", "\xEF\xBE\xBE",
                              "\xE4\xBF\xBE", "\xE4\xB8\xBE"}) {
    EXPECT_EQ(EscapeHtml(allowed), allowed);
  }
}

}  // namespace
}  // namespace hetero::insight
