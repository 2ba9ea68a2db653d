#include "operator/kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stop_token>
#include <vector>

#include "operator/kube/rate_limit.h"
#include "operator/kube/resource.h"
#include "tests/unit/operator/kube/fake_transport.h"
#include "tests/unit/operator/kube/instant_clock.h"

namespace hetero::kube {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Fixture {
  FakeTransport transport;
  InstantClock clock;
  metrics::Registry registry;
  Client client{transport, clock, registry, {}};

  absl::Status AnswerTo(Response response) {
    transport.Then(std::move(response));
    return client.Get(kPods, {"x", "a"}).status();
  }
};

TEST(ObjectKey, TextAndBack) {
  EXPECT_EQ(ObjectKey::Parse("x/a"), (ObjectKey{"x", "a"}));
  EXPECT_EQ(ObjectKey::Parse("a"), (ObjectKey{"", "a"}));
  EXPECT_EQ((ObjectKey{"x", "a"}).ToString(), "x/a");
}

TEST(ObjectKey, OfAnyShapeOfObject) {
  EXPECT_EQ(ObjectKey::Of({{"metadata", {{"namespace", "x"}, {"name", "a"}}}}),
            (ObjectKey{"x", "a"}));
  for (const char* text : {"null", "[]", "7", "{}", R"({"metadata":7})", R"({"metadata":[1]})",
                           R"({"metadata":{"name":7,"namespace":null}})"}) {
    EXPECT_EQ(ObjectKey::Of(json::parse(text)), ObjectKey{}) << text;
  }
}

TEST(Resource, Paths) {
  EXPECT_EQ(ResourcePath(kPods, "x"), "/api/v1/namespaces/x/pods");
  EXPECT_EQ(ResourcePath(kPods, "", "a"), "/api/v1/pods/a");
  EXPECT_EQ(ResourcePath(kNodes, "x", "a"), "/api/v1/nodes/a");
  EXPECT_EQ(ResourcePath(kLeases, "x", "a", "status"),
            "/apis/coordination.k8s.io/v1/namespaces/x/leases/a/status");
  EXPECT_EQ(ResourcePath(kPods, "x", "../secrets"), "/api/v1/namespaces/x/pods/..%2Fsecrets");
}

TEST(Resource, Escaping) {
  EXPECT_EQ(Escape("a=b,c in (d)\xC3\xA4&%+/"), "a%3Db%2Cc%20in%20%28d%29%C3%A4%26%25%2B%2F");
  EXPECT_EQ(Query().Add("a", "").Add("b", "1&2").Add("c", "3").text(), "?b=1%262&c=3");
}

TEST(Client, WhatIsSent) {
  Fixture f;
  f.transport.Always(
      [](const Request&, std::stop_token) { return JsonReply(200, json::object()); });
  ASSERT_TRUE(f.client.Update(kPods, {"x", "a"}, {{"b", 1}}, "status").ok());
  ASSERT_TRUE(f.client.Patch(kPods, {"x", "a"}, PatchType::kJson, json::array()).ok());
  ASSERT_TRUE(f.client.Apply(kPods, {"x", "a"}, json::object(), "me").ok());
  ASSERT_TRUE(f.client.DeleteCollection(kPods, "x", "a=b", {}).ok());
  const auto requests = f.transport.requests();
  EXPECT_EQ(requests[0].method, "PUT");
  EXPECT_EQ(requests[0].path, "/api/v1/namespaces/x/pods/a/status");
  EXPECT_EQ(requests[0].body, R"({"b":1})");
  EXPECT_EQ(requests[0].user_agent, "hetero-operator");
  EXPECT_EQ(requests[1].content_type, "application/json-patch+json");
  EXPECT_EQ(requests[2].path, "/api/v1/namespaces/x/pods/a?fieldManager=me&force=true");
  EXPECT_EQ(requests[2].content_type, "application/apply-patch+yaml");
  EXPECT_EQ(requests[3].path, "/api/v1/namespaces/x/pods?labelSelector=a%3Db");
  EXPECT_EQ(json::parse(requests[3].body)["propagationPolicy"], "Background");
}

// "DELETE .../pods/" without a name would delete them all.
TEST(Client, AnEmptyNameIsRefusedBeforeItIsSent) {
  Fixture f;
  EXPECT_EQ(f.client.Delete(kPods, {"x", ""}, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(f.client.Delete(kPods, {"", "a"}, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(f.transport.requests().empty());
}

TEST(Client, ErrorsKeepTheServersWords) {
  struct Case {
    int code;
    const char* reason;
    absl::StatusCode expected;
  };
  for (const Case& c : {Case{400, "BadRequest", absl::StatusCode::kInvalidArgument},
                        Case{422, "Invalid", absl::StatusCode::kInvalidArgument},
                        Case{401, "Unauthorized", absl::StatusCode::kUnauthenticated},
                        Case{403, "Forbidden", absl::StatusCode::kPermissionDenied},
                        Case{404, "NotFound", absl::StatusCode::kNotFound},
                        Case{409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
                        Case{409, "Conflict", absl::StatusCode::kAborted},
                        Case{410, "Expired", absl::StatusCode::kOutOfRange},
                        Case{429, "TooManyRequests", absl::StatusCode::kResourceExhausted},
                        Case{500, "InternalError", absl::StatusCode::kUnavailable},
                        Case{503, "ServiceUnavailable", absl::StatusCode::kUnavailable}}) {
    Fixture f;
    const absl::Status status = f.AnswerTo(ErrorReply(c.code, c.reason, "the server's words"));
    EXPECT_EQ(status.code(), c.expected) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("the server's words"));
    EXPECT_THAT(status.ToString(), HasSubstr("GET /api/v1/namespaces/x/pods/a"));
  }
}

TEST(Client, QuotaIsToldFromOtherRefusals) {
  Fixture f;
  EXPECT_TRUE(IsQuotaExceeded(f.AnswerTo(ErrorReply(
      403, "Forbidden", "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1"))));
  EXPECT_FALSE(IsQuotaExceeded(f.AnswerTo(ErrorReply(403, "Forbidden", "no"))));
}

TEST(Client, AnApiThatIsNotServedIsToldFromAnObjectThatIsNotThere) {
  Fixture f;
  EXPECT_TRUE(IsNotServed(f.AnswerTo({.status = 404, .body = "404 page not found\n"})));
  EXPECT_FALSE(IsNotServed(f.AnswerTo(ErrorReply(404, "NotFound", "pods \"a\" not found"))));
  EXPECT_FALSE(IsNotServed(f.AnswerTo({.status = 403, .body = "no"})));
}

TEST(Client, RepliesOfAnyShapeAreErrors) {
  Fixture f;
  for (const char* body : {"", "null", "[]", "7", "<html>", "{\"a\":", "\xFF\xFE"}) {
    EXPECT_EQ(f.AnswerTo({.status = 200, .body = body}).code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(f.AnswerTo({.status = 404, .body = body}).code(), absl::StatusCode::kNotFound);
  }
  for (const char* body : {R"({"items":7})", R"({"items":[7]})", R"({"items":{"a":1}})"}) {
    f.transport.Then(Response{.status = 200, .body = body});
    EXPECT_EQ(f.client.List(kPods, "", {}).status().code(), absl::StatusCode::kUnavailable);
  }
  for (const char* body : {"{}", R"({"items":null,"metadata":7})", R"({"items":[]})"}) {
    f.transport.Then(Response{.status = 200, .body = body});
    EXPECT_TRUE(f.client.List(kPods, "", {}).ok());
  }
}

TEST(Client, WatchLinesOfAnyShapeAreErrors) {
  for (const char* line :
       {"7", "{}", "[]", "nonsense", R"({"type":"ADDED"})", R"({"type":"ADDED","object":[]})",
        R"({"type":7,"object":{}})", R"({"type":"NEW","object":{}})"}) {
    Fixture f;
    f.transport.ThenLines({line});
    EXPECT_EQ(f.client.Watch(kPods, "", {}, [](std::string_view, const json&) {}, {}).code(),
              absl::StatusCode::kUnavailable)
        << line;
  }
  Fixture f;
  f.transport.ThenLines({R"({"type":"ERROR","object":{"code":"410","details":7}})"});
  EXPECT_EQ(f.client.Watch(kPods, "", {}, [](std::string_view, const json&) {}, {}).code(),
            absl::StatusCode::kUnavailable);
}

TEST(Client, ListsOnePageAtATime) {
  Fixture f;
  f.transport.Then(JsonReply(200, {{"metadata", {{"resourceVersion", "5"}, {"continue", "next"}}},
                                   {"items", {{{"metadata", {{"name", "a"}}}}}}}));
  const auto page = f.client.List(kPods, "x", {.limit = 1, .continue_token = "c=="});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->items.size(), 1u);
  EXPECT_EQ(page->resource_version, "5");
  EXPECT_EQ(page->continue_token, "next");
  EXPECT_EQ(f.transport.requests().at(0).path,
            "/api/v1/namespaces/x/pods?limit=1&continue=c%3D%3D");
}

Response Busy(int status, const std::string& retry_after) {
  return {.status = status, .headers = {{"retry-after", retry_after}}, .body = "busy"};
}

TEST(Client, WaitsAsLongAsTheServerAsks) {
  Fixture f;
  f.transport.Then(Busy(429, "2"));
  f.transport.Then(Busy(503, "3"));
  f.transport.Then(JsonReply(200, json::object()));
  EXPECT_TRUE(f.client.Get(kPods, {"x", "a"}).ok());
  EXPECT_THAT(f.clock.sleeps(), ElementsAre(seconds(2), seconds(3)));
}

// Every kind of call, with `stop`.
std::vector<std::function<absl::Status(Client&, std::stop_token)>> AllCalls() {
  static const ObjectKey key{"x", "a"};
  static const json object = json::object();
  return {
      [](Client& c, std::stop_token stop) { return c.Get(kPods, key, stop).status(); },
      [](Client& c, std::stop_token stop) { return c.List(kPods, "x", {}, stop).status(); },
      [](Client& c, std::stop_token stop) { return c.Create(kPods, "x", object, stop).status(); },
      [](Client& c, std::stop_token stop) {
        return c.Update(kPods, key, object, "", stop).status();
      },
      [](Client& c, std::stop_token stop) {
        return c.Patch(kPods, key, PatchType::kMerge, object, "", stop).status();
      },
      [](Client& c, std::stop_token stop) {
        return c.Apply(kPods, key, object, "me", true, stop).status();
      },
      [](Client& c, std::stop_token stop) { return c.Delete(kPods, key, {}, stop); },
      [](Client& c, std::stop_token stop) {
        return c.DeleteCollection(kPods, "x", "a=b", {}, stop);
      },
      [](Client& c, std::stop_token stop) {
        return c.Watch(
            kPods, "", {}, [](std::string_view, const json&) {}, stop);
      },
  };
}

TEST(Client, NothingIsAskedAfterAStop) {
  Fixture f;
  std::stop_source stop;
  stop.request_stop();
  for (const auto& call : AllCalls()) {
    EXPECT_EQ(call(f.client, stop.get_token()).code(), absl::StatusCode::kCancelled);
  }
  EXPECT_TRUE(f.transport.requests().empty());
}

TEST(Client, AStopReachesTheRequestUnderWay) {
  for (const auto& call : AllCalls()) {
    Fixture f;
    std::stop_source source;
    const auto stopped_there = [&](std::stop_token stop) -> absl::StatusOr<Response> {
      source.request_stop();
      if (!stop.stop_requested()) return Response{.status = 200, .body = "{}"};
      return absl::CancelledError("stopped");
    };
    f.transport.Then([&](const Request&, std::stop_token stop) { return stopped_there(stop); });
    f.transport.ThenStream([&](const Request&, const Transport::OnLine&, std::stop_token stop) {
      return stopped_there(stop);
    });
    EXPECT_EQ(call(f.client, source.get_token()).code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(f.transport.requests().size(), 1u);
  }
}

// Some calls of a part that is told to stop are made by parts of it that know of no stop.
TEST(Client, CallsOfAPartThatIsToldToStopEndWhetherOrNotTheyHaveAStopOfTheirOwn) {
  for (const auto& call : AllCalls()) {
    for (const bool own : {false, true}) {
      Fixture f;
      std::stop_source part, never;
      const auto stopped_there = [&](std::stop_token stop) -> absl::StatusOr<Response> {
        part.request_stop();
        if (!stop.stop_requested()) return Response{.status = 200, .body = "{}"};
        return absl::CancelledError("stopped");
      };
      f.transport.Then([&](const Request&, std::stop_token stop) { return stopped_there(stop); });
      f.transport.ThenStream([&](const Request&, const Transport::OnLine&, std::stop_token stop) {
        return stopped_there(stop);
      });
      Client until = f.client.Until(part.get_token());
      EXPECT_EQ(call(until, own ? never.get_token() : std::stop_token()).code(),
                absl::StatusCode::kCancelled);
      EXPECT_EQ(f.transport.requests().size(), 1u);
    }
  }
}

TEST(Client, AStopOfItsOwnEndsACallOfAPartThatGoesOn) {
  Fixture f;
  std::stop_source part, own;
  own.request_stop();
  Client until = f.client.Until(part.get_token());
  EXPECT_EQ(until.Get(kPods, {"x", "a"}, own.get_token()).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(Client, AStopEndsTheWaitForABusyServer) {
  Fixture f;
  std::stop_source stop;
  f.transport.Then([&](const Request&, std::stop_token) {
    stop.request_stop();
    return Busy(429, "2");
  });
  EXPECT_EQ(f.client.Get(kPods, {"x", "a"}, stop.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(f.transport.requests().size(), 1u);
  EXPECT_THAT(f.clock.sleeps(), ElementsAre());
}

TEST(Client, DoesNotWaitPastItsDeadline) {
  Fixture f;
  const absl::Status status = f.AnswerTo(Busy(429, "31"));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RetryAfter(status), seconds(31));
  EXPECT_THAT(f.clock.sleeps(), ElementsAre());
}

TEST(Client, GivesUpAfterTenRetries) {
  Fixture f;
  f.transport.Always([](const Request&, std::stop_token) { return Busy(429, "1"); });
  EXPECT_FALSE(f.client.Get(kPods, {"x", "a"}).ok());
  EXPECT_EQ(f.transport.requests().size(), 11u);
}

TEST(Client, ARetryAfterThatIsNoNumberIsNotOne) {
  for (const char* text : {"", "soon", "-1", "1.5", "99999999999"}) {
    Fixture f;
    EXPECT_EQ(RetryAfter(f.AnswerTo(Busy(429, text))), std::nullopt) << text;
  }
}

TEST(RateLimit, ABurstAndThenARate) {
  InstantClock clock;
  RateLimit limit(clock, /*qps=*/10, /*burst=*/2);
  EXPECT_EQ(limit.Reserve(), base::Duration::zero());
  EXPECT_EQ(limit.Reserve(), base::Duration::zero());
  EXPECT_NEAR(base::ToSeconds(limit.Reserve()), 0.1, 1e-6);
  EXPECT_NEAR(base::ToSeconds(limit.Reserve()), 0.2, 1e-6);
  limit.Return();
  EXPECT_NEAR(base::ToSeconds(limit.Reserve()), 0.2, 1e-6);
  clock.Advance(seconds(60));
  EXPECT_EQ(limit.Reserve(), base::Duration::zero());
}

TEST(RateLimit, ZeroIsNoLimit) {
  InstantClock clock;
  RateLimit limit(clock, /*qps=*/0, /*burst=*/0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(limit.Reserve(), base::Duration::zero());
}

}  // namespace
}  // namespace hetero::kube
