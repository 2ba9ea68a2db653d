#include "operator/kube/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "operator/kube/informer.h"
#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/kube/server_access.h"

// What can go wrong between an API server and a store, over real HTTPS; the transitions themselves
// are tested in tests/unit/operator/kube.
namespace hetero::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Real time, but nobody waits long: what was to be slept is written down instead.
class ImpatientClock : public base::Clock {
 public:
  base::Instant Now() const override { return Real().Now(); }
  base::WallTime WallNow() const override { return Real().WallNow(); }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    size_t count;
    {
      std::lock_guard lock(mutex_);
      sleeps_.push_back(duration);
      count = sleeps_.size();
    }
    if (on_sleep) on_sleep(count);
    return Real().SleepFor(std::min<base::Duration>(duration, milliseconds(5)), std::move(stop));
  }
  std::vector<base::Duration> sleeps() const {
    std::lock_guard lock(mutex_);
    return sleeps_;
  }

  std::function<void(size_t nth)> on_sleep;  // set before anybody sleeps; counts from 1

 private:
  mutable std::mutex mutex_;  // guards sleeps_
  std::vector<base::Duration> sleeps_;
};

using Answer = std::function<void(ScriptedServer::Connection& connection)>;

json Pod(const std::string& name, const std::string& version) {
  return {{"metadata", {{"namespace", "n"}, {"name", name}, {"resourceVersion", version}}}};
}
std::string Line(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump() + "\n";
}
json GoneStatus() {
  return {{"kind", "Status"},
          {"status", "Failure"},
          {"code", 410},
          {"reason", "Expired"},
          {"message", "too old resource version"}};
}
Answer Page(const std::vector<json>& items, const std::string& version,
            const std::string& next = "") {
  const json page = {{"metadata", {{"resourceVersion", version}, {"continue", next}}},
                     {"items", items}};
  return [body = page.dump()](auto& connection) { connection.Respond(200, body); };
}
Answer Reply(int status, const std::string& body, const std::string& headers = "") {
  return [=](auto& connection) { connection.Respond(status, body, headers); };
}
// A watch of these chunks, each sent by itself, which then ends as `end` says.
Answer Watch(const std::vector<std::string>& chunks, const Answer& end) {
  return [=](auto& connection) {
    connection.BeginChunks();
    for (const std::string& chunk : chunks) {
      connection.Chunk(chunk);
      connection.ClosedWithin(milliseconds(5));  // lets it arrive alone
    }
    end(connection);
  };
}
const Answer kEnd = [](auto& connection) { connection.EndChunks(); };
const Answer kCut = [](auto& connection) { connection.Close(); };
const Answer kSilence = [](auto& connection) { connection.AwaitClose(); };

class WatcherOverHttps : public ::testing::Test {
 protected:
  WatcherOverHttps()
      : server_([this](const auto&, auto& connection) { Next()(connection); }),
        transport_(TransportTo(server_)) {}

  void Then(Answer answer) {
    std::lock_guard lock(mutex_);
    script_.push_back(std::move(answer));
    ++answers_;
  }
  // Runs an informer of pods until every answer has been given and one more thing was asked.
  void Run() {
    Informer<std::string> informer(
        client_, clock_, registry_,
        {.resource = kPods,
         .page_size = 2,
         .watch_timeout = watch_timeout_,
         .watch_silence = watch_silence_},
        [](const json& object, const auto& previous) {
          const std::string version = object["metadata"].value("resourceVersion", "");
          return previous != nullptr && *previous == version
                     ? previous
                     : std::make_shared<const std::string>(version);
        },
        [this](const ObjectKey& key, const auto& before, const auto& now) {
          told_.push_back(key.name + ":" + (before ? *before : "") + ">" + (now ? *now : ""));
        },
        /*index=*/nullptr, /*random=*/[] { return 0.0; });
    {
      const std::jthread running([&](std::stop_token stop) { informer.Run(stop); });
      EXPECT_TRUE(server_.AwaitRequests(answers_ + 1));
    }
    for (const auto& request : server_.requests()) {
      const bool watch = request.target.find("watch=true") != std::string::npos;
      asked_.push_back((watch ? "watch " : "list ") +
                       Parameter(request.target, watch ? "resourceVersion" : "continue"));
    }
    for (const ObjectKey& key : informer.store().Keys()) {
      stored_.push_back(key.name + ":" + *informer.store().Get(key));
    }
  }

  ImpatientClock clock_;
  metrics::Registry registry_;
  base::Duration watch_timeout_ = seconds(290);
  base::Duration watch_silence_ = seconds(75);
  std::vector<std::string> told_;    // "name:version before>version now"
  std::vector<std::string> stored_;  // in the end
  std::vector<std::string> asked_;   // "list CONTINUE" and "watch VERSION"

 private:
  Answer Next() {
    std::lock_guard lock(mutex_);
    if (script_.empty()) return kSilence;
    Answer answer = std::move(script_.front());
    script_.pop_front();
    return answer;
  }
  static std::string Parameter(const std::string& target, const std::string& name) {
    const size_t at = target.find(name + "=");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 1;
    return target.substr(begin, target.find('&', begin) - begin);
  }

  std::mutex mutex_;  // guards script_
  std::deque<Answer> script_;
  size_t answers_ = 0;

 protected:
  ScriptedServer server_;
  std::unique_ptr<Transport> transport_;
  Client client_{*transport_, clock_, registry_, {}};
};

TEST_F(WatcherOverHttps, ListsInPagesAndWatchesFromTheListsVersion) {
  Then(Page({Pod("a", "1"), Pod("b", "2")}, "7", "next=="));
  Then(Page({Pod("c", "3")}, "7"));
  Then(Watch({Line("ADDED", Pod("d", "8")), Line("MODIFIED", Pod("a", "9")),
              Line("DELETED", Pod("b", "10"))},
             kEnd));
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "list next%3D%3D", "watch 7", "watch 10"));
  EXPECT_THAT(told_, ElementsAre("a:>1", "b:>2", "c:>3", "d:>8", "a:1>9", "b:2>"));
  EXPECT_THAT(stored_, ElementsAre("a:9", "c:3", "d:8"));
  EXPECT_THAT(server_.requests().at(0).target, HasSubstr("limit=2"));
  EXPECT_THAT(server_.requests().at(0).target, Not(HasSubstr("resourceVersion")));
}

TEST_F(WatcherOverHttps, AListThatExpiresBetweenPagesStartsOver) {
  Then(Page({Pod("a", "1"), Pod("b", "2")}, "7", "next"));
  Then(Reply(410, GoneStatus().dump()));
  Then(Page({Pod("b", "8")}, "9"));
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "list next", "list ", "watch 9"));
  EXPECT_THAT(stored_, ElementsAre("b:8"));
}

TEST_F(WatcherOverHttps, AnExpiredVersionListsAnewWhetherByStatusOrByEvent) {
  Then(Page({Pod("a", "1"), Pod("b", "2")}, "7"));
  Then(Reply(410, GoneStatus().dump()));
  Then(Page({Pod("a", "1"), Pod("c", "8")}, "9"));
  Then(Watch({Line("MODIFIED", Pod("a", "10")), Line("ERROR", GoneStatus())}, kEnd));
  Then(Page({Pod("a", "11")}, "12"));
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "list ", "watch 9", "list ", "watch 12"));
  EXPECT_THAT(told_, ElementsAre("a:>1", "b:>2", "c:>8", "b:2>", "a:1>10", "a:10>11", "c:8>"));
  EXPECT_THAT(stored_, ElementsAre("a:11"));
}

TEST_F(WatcherOverHttps, ABookmarkMovesTheVersionAndNothingElse) {
  Then(Page({Pod("a", "1")}, "7"));
  Then(Watch({Line("BOOKMARK", {{"metadata", {{"resourceVersion", "5000"}}}})}, kEnd));
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "watch 5000"));
  EXPECT_THAT(told_, ElementsAre("a:>1"));
  EXPECT_THAT(server_.requests().at(1).target, HasSubstr("allowWatchBookmarks=true"));
}

TEST_F(WatcherOverHttps, AWatchThatTheServerEndsIsOpenedAgainAtOnceWithoutAList) {
  Then(Page({}, "7"));
  for (const char* version : {"8", "9", "10"}) {
    Then(Watch({Line("MODIFIED", Pod("a", version))}, kEnd));
  }
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "watch 8", "watch 9", "watch 10"));
  EXPECT_THAT(clock_.sleeps(), IsEmpty());
}

TEST_F(WatcherOverHttps, EventsArriveWhereverTheirLinesAreCut) {
  const std::string a = Line("ADDED", Pod("a", "8"));
  const std::string b = Line("ADDED", Pod("b", "9"));
  const std::string c = Line("ADDED", Pod("c", "10"));
  Then(Page({}, "7"));
  // In the middle of a word, before the end of the line, and several lines at once.
  Then(Watch({a.substr(0, 11), a.substr(11, a.size() - 12), "\n" + b + c + "\n"}, kEnd));
  Then(Watch({Line("DELETED", Pod("a", "11")) + Line("MODIFIED", Pod("b", "12"))}, kEnd));
  Run();
  EXPECT_THAT(told_, ElementsAre("a:>8", "b:>9", "c:>10", "a:8>", "b:9>12"));
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "watch 10", "watch 12"));
}

TEST_F(WatcherOverHttps, AWatchOnADeadConnectionIsGivenUpAndGoesOnFromWhereItWas) {
  watch_silence_ = milliseconds(300);
  Then(Page({}, "7"));
  Then(Watch({Line("ADDED", Pod("a", "8"))}, kSilence));
  Then(kSilence);  // not even a head
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "watch 8", "watch 8"));
  EXPECT_THAT(told_, ElementsAre("a:>8"));
  EXPECT_EQ(clock_.sleeps().size(), 1u) << "for the one that was not opened";
}

TEST_F(WatcherOverHttps, ABusyServerIsAskedAgainWhenItSaysSoAndABrokenOneAfterABackoff) {
  Then(Reply(429, "busy", "Retry-After: 3\r\n"));
  Then(Reply(500, "etcdserver: leader changed"));
  Then(Page({Pod("a", "1"), Pod("b", "2")}, "7", "next"));
  Then(Reply(500, "etcdserver: leader changed"));
  Then(Page({Pod("c", "3")}, "7"));
  Then(Reply(429, "busy"));
  Run();
  // A page that failed is asked for again, not the whole list.
  EXPECT_THAT(asked_, ElementsAre("list ", "list ", "list ", "list next", "list next", "watch 7",
                                  "watch 7"));
  EXPECT_THAT(stored_, ElementsAre("a:1", "b:2", "c:3"));
  EXPECT_THAT(clock_.sleeps(),
              ElementsAre(seconds(3), milliseconds(800), milliseconds(1600), milliseconds(3200)));
}

TEST_F(WatcherOverHttps, AHugeObjectIsTakenInFromListAndWatch) {
  json huge = Pod("a", "1");
  huge["data"] = std::string(size_t{12} << 20, 'x');
  json changed = huge;
  changed["metadata"]["resourceVersion"] = "8";
  Then(Page({huge, Pod("b", "2")}, "7"));
  Then([line = Line("MODIFIED", changed)](auto& connection) {
    connection.BeginChunks();
    for (size_t at = 0; at < line.size(); at += 1 << 16) connection.Chunk(line.substr(at, 1 << 16));
    connection.EndChunks();
  });
  Run();
  EXPECT_THAT(told_, ElementsAre("a:>1", "b:>2", "a:1>8"));
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "watch 8"));
}

TEST_F(WatcherOverHttps, AConnectionCutInsideALineLosesNothing) {
  const std::string line = Line("MODIFIED", Pod("a", "9"));
  Then(Page({Pod("a", "1")}, "7"));
  Then(Watch({Line("MODIFIED", Pod("a", "8")), line.substr(0, line.size() / 2)}, kCut));
  Then(Watch({line}, kEnd));
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "watch 8", "watch 9"));
  EXPECT_THAT(told_, ElementsAre("a:>1", "a:1>8", "a:8>9"));
  EXPECT_EQ(clock_.sleeps().size(), 1u);
}

TEST_F(WatcherOverHttps, AConnectionCutInsideAPageLosesNothing) {
  Then([](auto& connection) {
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"metadata\":{\"resourceV");
    connection.Close();
  });
  Then(Page({Pod("a", "1")}, "7"));
  Run();
  EXPECT_THAT(asked_, ElementsAre("list ", "list ", "watch 7"));
  EXPECT_THAT(stored_, ElementsAre("a:1"));
}

TEST_F(WatcherOverHttps, AWatchOutlivesARenewedCertificateAndTrustsNoForeignOne) {
  const auto then_cut_and = [this](const char* version, std::function<void()> act) {
    Then(Watch({Line("MODIFIED", Pod("a", version))}, [act = std::move(act)](auto& connection) {
      act();
      connection.Close();
    }));
  };
  Then(Page({Pod("a", "1")}, "7"));
  then_cut_and("8", [this] { server_.RenewCertificate(); });
  then_cut_and("9", [this] { server_.ShowForeignCertificate(); });
  clock_.on_sleep = [this](size_t nth) {
    if (nth == 4) server_.RenewCertificate();
  };
  Then(Watch({Line("MODIFIED", Pod("a", "10"))}, kEnd));
  Run();
  // After each cut, and after each of two connections that were refused.
  EXPECT_EQ(clock_.sleeps().size(), 4u);
  EXPECT_THAT(asked_, ElementsAre("list ", "watch 7", "watch 8", "watch 9", "watch 10"));
  EXPECT_THAT(told_, ElementsAre("a:>1", "a:1>8", "a:8>9", "a:9>10"));
}

}  // namespace
}  // namespace hetero::kube
