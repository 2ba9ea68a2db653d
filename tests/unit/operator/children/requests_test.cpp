#include "operator/children/requests.h"

#include <gtest/gtest.h>

namespace hetero::children {
namespace {

using nlohmann::json;

TEST(RequestsTest, TheShareOfANodeIsThatOfItsScarcestResource) {
  const Resources node = ResourcesOf(json::parse(R"({"cpu": "96", "memory": "1Ti",
      "nvidia.com/gpu": "8", "ephemeral-storage": "1T"})"));
  const auto share = [&node](const std::string& requests) {
    return DominantShare(RequestsOf(json::parse(R"({"containers": [{"resources": {"requests": )" +
                                                requests + "}}]}")),
                         node);
  };
  EXPECT_DOUBLE_EQ(share(R"({"cpu": "12", "memory": "64Gi", "nvidia.com/gpu": 4})"), 0.5);
  EXPECT_DOUBLE_EQ(share(R"({"cpu": "24", "memory": "1Gi"})"), 0.25);
  EXPECT_DOUBLE_EQ(share(R"({"memory": "768Gi"})"), 0.75);
  EXPECT_DOUBLE_EQ(share(R"({"cpu": "500"})"), 1);
  EXPECT_DOUBLE_EQ(share(R"({"example.com/fpga": 1})"), 0) << "the node has none";
  EXPECT_DOUBLE_EQ(share("{}"), 0);
  EXPECT_TRUE(ResourcesOf(json()).empty());
}

}  // namespace
}  // namespace hetero::children
