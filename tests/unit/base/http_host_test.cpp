#include "base/http_host.h"

#include <gtest/gtest.h>

namespace hetero::metrics {
namespace {

constexpr char kPodProxy[] = "/api/v1/namespaces/default/pods/job-head:7072/proxy/live";
constexpr char kServiceProxy[] = "/api/v1/namespaces/default/services/job:page/proxy/live";

TEST(HttpHostTest, NamesThatLeadNowhereElseAreKnown) {
  for (const char* host :
       {"localhost", "localhost:40123", "LOCALHOST:80", "job.localhost:1", "127.0.0.1:7072",
        "10.4.0.17:7072", "10.4.0.17", "[::1]:7072", "[fd00::7]:7072", "[::ffff:10.0.0.1]",
        "job-head:7072", "job-head.default.svc", "job-head.default.svc.cluster.local:7072"}) {
    EXPECT_TRUE(IsKnownHost({.host = host, .forwarded_uri = "", .from_this_machine = false}))
        << host;
    EXPECT_TRUE(IsKnownHost({.host = host, .forwarded_uri = "", .from_this_machine = true}))
        << host;
  }
}

TEST(HttpHostTest, APublicNameIsNot) {
  for (const char* host :
       {"rebound.example.com", "rebound.example.com:7072", "localhost.example.com",
        "a.svc.example.com", "127.0.0.1.example.com", "10.0.0.7.nip.io:7072", "", ":7072", "[::1",
        "[rebound.example.com]", "evil svc", "a/.svc", "1.2.3.4@rebound.example.com"}) {
    EXPECT_FALSE(IsKnownHost({.host = host, .forwarded_uri = "", .from_this_machine = false}))
        << host;
    EXPECT_FALSE(IsKnownHost({.host = host, .forwarded_uri = kPodProxy, .from_this_machine = true}))
        << host;
  }
}

// It keeps the name under which it was asked itself, and says what for.
TEST(HttpHostTest, TheProxyOfAnApiServerMayBringAnyName) {
  for (const char* uri : {kPodProxy, kServiceProxy}) {
    EXPECT_TRUE(IsKnownHost({.host = "ABC.gr7.eu-west-1.eks.example.com",
                             .forwarded_uri = uri,
                             .from_this_machine = false}));
  }
  EXPECT_FALSE(IsKnownHost(
      {.host = "rebound.example.com", .forwarded_uri = "/live", .from_this_machine = false}));
}

}  // namespace
}  // namespace hetero::metrics
