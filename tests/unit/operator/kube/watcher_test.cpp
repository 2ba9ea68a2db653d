#include "operator/kube/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_transport.h"
#include "instant_clock.h"

namespace hetero::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json Pod(const std::string& name, const std::string& version) {
  return {{"metadata", {{"namespace", "n"}, {"name", name}, {"resourceVersion", version}}}};
}
Response Page(const std::vector<nlohmann::json>& items, const std::string& version,
              const std::string& next = "") {
  return JsonReply(
      200, {{"metadata", {{"resourceVersion", version}, {"continue", next}}}, {"items", items}});
}
std::string Line(const std::string& type, const nlohmann::json& object) {
  return nlohmann::json{{"type", type}, {"object", object}}.dump();
}
const Response kEnd{.status = 200};

class WatcherTest : public ::testing::Test {
 protected:
  // Runs until the script is used up.
  void Run() {
    const auto stop_here = [this](const auto&...) -> absl::StatusOr<Response> {
      stop_.request_stop();
      return absl::CancelledError("stopped");
    };
    transport_.Always([=](const Request&, std::stop_token) { return stop_here(); });
    transport_.AlwaysStream(
        [=](const Request&, const Transport::OnLine&, std::stop_token) { return stop_here(); });
    Watcher watcher(
        client_, clock_, registry_,
        {.resource = kPods,
         .label_selector = "app=x",
         .page_size = page_size_,
         .optional = optional_},
        {.list_begins = [this] { heard_.push_back("begin"); },
         .apply = [this](nlohmann::json o) { heard_.push_back("+" + ObjectKey::Of(o).name); },
         .remove = [this](nlohmann::json o) { heard_.push_back("-" + ObjectKey::Of(o).name); },
         .list_ends = [this] { heard_.push_back("end"); },
         .absent = [this] { heard_.push_back("absent"); }},
        [] { return 0.0; });
    watcher.Run(stop_.get_token());
    for (const Request& request : transport_.requests()) paths_.push_back(request.path);
  }
  // A watch that the server holds open for `lived` and then ends so.
  void ThenWatch(base::Duration lived, std::vector<std::string> lines,
                 absl::StatusOr<Response> end = kEnd) {
    transport_.ThenStream([this, lived, lines = std::move(lines), end = std::move(end)](
                              const Request&, const Transport::OnLine& on_line,
                              std::stop_token) -> absl::StatusOr<Response> {
      clock_.Advance(lived);
      for (const std::string& line : lines) {
        if (!on_line(line)) return kEnd;
      }
      return end;
    });
  }

  InstantClock clock_;
  metrics::Registry registry_;
  FakeTransport transport_;
  Client client_{transport_, clock_, registry_, {.qps = 0}};
  std::stop_source stop_;
  int page_size_ = 2;
  bool optional_ = false;
  std::vector<std::string> heard_;
  std::vector<std::string> paths_;
};

TEST_F(WatcherTest, ListsInPagesThenWatchesFromTheListsVersion) {
  transport_.Then(Page({Pod("a", "3"), Pod("b", "4")}, "7", "token"));
  transport_.Then(Page({Pod("c", "5")}, "7"));
  ThenWatch(seconds(100), {Line("ADDED", Pod("d", "8")), Line("MODIFIED", Pod("a", "9")),
                           Line("DELETED", Pod("b", "10")), Line("BOOKMARK", Pod("", "20"))});
  Run();
  EXPECT_THAT(heard_, ElementsAre("begin", "+a", "+b", "+c", "end", "+d", "+a", "-b"));
  ASSERT_EQ(paths_.size(), 4u);
  EXPECT_EQ(paths_[0], "/api/v1/pods?labelSelector=app%3Dx&limit=2");
  EXPECT_EQ(paths_[1], "/api/v1/pods?labelSelector=app%3Dx&limit=2&continue=token");
  EXPECT_THAT(paths_[2], HasSubstr("resourceVersion=7&timeoutSeconds=290"));
  EXPECT_THAT(paths_[2], HasSubstr("allowWatchBookmarks=true"));
  EXPECT_THAT(paths_[3], HasSubstr("resourceVersion=20&"));
  EXPECT_THAT(clock_.sleeps(), ElementsAre());
}

// Five hundred jobs with their templates at once were more than the operator's memory.
TEST_F(WatcherTest, PagesAreAsLargeAsTheirObjectsAllow) {
  page_size_ = 500;
  const auto page = [](int count, size_t bytes, const std::string& next) {
    nlohmann::json pod = Pod("a", "3");
    pod["spec"] = std::string(bytes, 'x');
    return Page(std::vector<nlohmann::json>(static_cast<size_t>(count), pod), "7", next);
  };
  for (int i = 0; i < 4; ++i) transport_.Then(page(10, 100, "next"));
  transport_.Then(page(10, 20'000, "next"));
  transport_.Then(page(10, 1'000'000, "next"));
  transport_.Then(page(10, 100, ""));
  Run();
  std::vector<std::string> limits;
  for (const std::string& path : paths_) {
    const size_t at = path.find("limit=");
    if (at != std::string::npos) limits.push_back(path.substr(at + 6, path.find('&', at) - at - 6));
  }
  EXPECT_THAT(limits, ElementsAre("10", "40", "160", "500", "500", "26", "10"));
}

TEST_F(WatcherTest, ExpiredContinueTokenStartsOver) {
  transport_.Then(Page({Pod("a", "3"), Pod("b", "4")}, "7", "token"));
  transport_.Then(ErrorReply(410, "Expired", "the provided continue parameter is too old"));
  transport_.Then(Page({Pod("a", "9")}, "9"));
  Run();
  EXPECT_THAT(heard_, ElementsAre("begin", "+a", "+b", "begin", "+a", "end"));
}

// Once its rights or its definition were away, what was known is compared with a whole list again.
TEST_F(WatcherTest, AListOfAnOptionalKindThatIsAbsentBeginsAnew) {
  optional_ = true;
  transport_.Then(Page({Pod("a", "3")}, "7", "token"));
  transport_.Then(ErrorReply(403, "Forbidden", "no rights"));
  transport_.Then(Page({Pod("b", "3")}, "8"));
  Run();
  EXPECT_THAT(heard_, ElementsAre("begin", "+a", "absent", "begin", "+b", "end"));
}

TEST_F(WatcherTest, ExpiredVersionListsAnewWhetherByStatusOrByEvent) {
  transport_.Then(Page({}, "7"));
  ThenWatch(seconds(0), {}, ErrorReply(410, "Expired", "too old resource version"));
  transport_.Then(Page({}, "8"));
  ThenWatch(seconds(100),
            {Line("ADDED", Pod("a", "9")), Line("ERROR", StatusObject(410, "Expired", "too old"))});
  transport_.Then(Page({}, "10"));
  Run();
  EXPECT_THAT(heard_, ElementsAre("begin", "end", "begin", "end", "+a", "begin", "end"));
  EXPECT_THAT(paths_.back(), HasSubstr("resourceVersion=10&"));
  EXPECT_THAT(paths_[4], Not(HasSubstr("resourceVersion")));
}

TEST_F(WatcherTest, VersionThatTheServerCallsInvalidListsAnew) {
  transport_.Then(Page({}, "7"));
  ThenWatch(seconds(0), {}, ErrorReply(400, "BadRequest", "invalid resource version"));
  transport_.Then(Page({}, "8"));
  Run();
  EXPECT_THAT(heard_, ElementsAre("begin", "end", "begin", "end"));
}

TEST_F(WatcherTest, ErrorsBackOffAndAreForgivenAfterAWatchThatLasted) {
  const absl::Status refused = absl::UnavailableError("connection refused");
  for (int i = 0; i < 7; ++i) transport_.Then(absl::StatusOr<Response>(refused));
  transport_.Then(Page({}, "7"));
  ThenWatch(seconds(0), {}, refused);
  ThenWatch(seconds(60), {Line("BOOKMARK", Pod("", "9"))}, refused);
  ThenWatch(seconds(0), {}, refused);
  Run();
  EXPECT_THAT(clock_.sleeps(),
              ElementsAre(milliseconds(800), milliseconds(1600), milliseconds(3200),
                          milliseconds(6400), milliseconds(12800), milliseconds(25600), seconds(30),
                          seconds(30), milliseconds(800), milliseconds(1600)));
}

// A connection that died without a word was noticed after five minutes, when the watch was over.
TEST_F(WatcherTest, ASilentWatchIsOpenedAnewFromWhereItWas) {
  transport_.Then(Page({Pod("a", "3")}, "7"));
  ThenWatch(seconds(75), {}, absl::DeadlineExceededError("silent"));
  ThenWatch(seconds(100), {Line("BOOKMARK", Pod("", "9"))}, absl::DeadlineExceededError("silent"));
  Run();
  EXPECT_THAT(heard_, ElementsAre("begin", "+a", "end"));
  EXPECT_THAT(paths_[2], HasSubstr("resourceVersion=7&"));
  EXPECT_THAT(paths_[3], HasSubstr("resourceVersion=9&"));
  EXPECT_THAT(clock_.sleeps(), ElementsAre());
  EXPECT_THAT(transport_.idle_limits(), Each(seconds(75)));
}

TEST_F(WatcherTest, ServerThatClosesAtOnceIsNotAskedInAHotLoop) {
  transport_.Then(Page({}, "7"));
  for (int i = 0; i < 4; ++i) ThenWatch(milliseconds(1), {});
  Run();
  EXPECT_THAT(clock_.sleeps(),
              ElementsAre(milliseconds(800), milliseconds(1600), milliseconds(3200)));
}

// As an API server does with a client that falls behind.
TEST_F(WatcherTest, AWatchThatBroughtSomethingIsReopenedAtOnceHoweverSoonItWasClosed) {
  transport_.Then(Page({}, "7"));
  for (const char* version : {"8", "9", "10", "11"}) {
    ThenWatch(milliseconds(1), {Line("MODIFIED", Pod("a", version))});
  }
  Run();
  EXPECT_THAT(clock_.sleeps(), ElementsAre());
}

TEST_F(WatcherTest, RefusalIsLoggedOncePerMessage) {
  transport_.Then(Page({}, "7"));
  for (int i = 0; i < 4; ++i) {
    ThenWatch(seconds(0), {}, ErrorReply(403, "Forbidden", "pods is forbidden"));
  }
  ThenWatch(seconds(0), {}, ErrorReply(401, "Unauthorized", "Unauthorized"));
  ::testing::internal::CaptureStderr();
  Run();
  const std::string log = ::testing::internal::GetCapturedStderr();
  size_t warnings = 0;
  for (size_t at = log.find(" warn "); at != std::string::npos; at = log.find(" warn ", at + 1)) {
    ++warnings;
  }
  EXPECT_EQ(warnings, 2u) << log;
  EXPECT_THAT(log, HasSubstr("pods is forbidden"));
}

TEST_F(WatcherTest, ListWithoutVersionIsAnError) {
  transport_.Then(JsonReply(200, {{"items", nlohmann::json::array()}}));
  transport_.Then(Page({}, "7"));
  Run();
  EXPECT_THAT(heard_, ElementsAre("begin", "end"));
  EXPECT_EQ(clock_.sleeps().size(), 1u);
}

TEST_F(WatcherTest, ObjectsOfAnyShapeAreSurvived) {
  transport_.Then(Page({Pod("a", "3")}, "7"));
  ThenWatch(seconds(100),
            {Line("ADDED", nlohmann::json::object()), Line("ADDED", 7),
             Line("MODIFIED", {{"metadata", {{"resourceVersion", 8}}}}), "[]", "not json"});
  transport_.Then(Page({}, "9"));
  Run();
  EXPECT_THAT(paths_.back(), HasSubstr("resourceVersion=7&"));
}

}  // namespace
}  // namespace hetero::kube
