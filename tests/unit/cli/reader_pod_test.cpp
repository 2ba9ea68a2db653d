#include "cli/reader_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/children/restricted_profile.h"

namespace hetero::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json JobWith(const json& head_spec) {
  return {{"apiVersion", "training.hetero.dev/v1alpha1"},
          {"kind", "HeteroTrainingJob"},
          {"metadata", {{"name", "vit"}, {"namespace", "team-a"}, {"uid", "u-1"}}},
          {"spec",
           {{"roles",
             {{{"name", "cpu"}, {"type", "CPUWorker"}},
              {{"name", "head"}, {"type", "Head"}, {"template", {{"spec", head_spec}}}}}}}}};
}

json WithClaim() {
  return {{"nodeSelector", {{"pool", "storage"}}},
          {"volumes",
           {{{"name", "out"}, {"persistentVolumeClaim", {{"claimName", "results"}}}},
            {{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "pictures"}}}}}},
          {"containers",
           {{{"name", "runtime"},
             {"volumeMounts",
              {{{"name", "out"}, {"mountPath", "/out"}, {"subPath", "vit"}},
               {{"name", "data"}, {"mountPath", "/data"}}}}}}}};
}

TEST(ReaderPod, MountsTheVolumeOfTheReportAlone) {
  const auto pod = ReaderPod(JobWith(WithClaim()), "vit-report-1", "/out/vit", "");
  ASSERT_TRUE(pod.ok()) << pod.status();
  const json& spec = (*pod)["spec"];
  ASSERT_EQ(spec["volumes"].size(), 1u);
  EXPECT_EQ(spec["volumes"][0]["persistentVolumeClaim"]["claimName"], "results");
  ASSERT_EQ(spec["containers"].size(), 2u);
  for (const json& container : spec["containers"]) {
    EXPECT_EQ(container["volumeMounts"],
              json::parse(R"([{"name": "out", "mountPath": "/out", "subPath": "vit",
                               "readOnly": true}])"));
    EXPECT_EQ(container["image"], "hetero-runtime:0.3.0");
  }
  EXPECT_EQ(spec["containers"][0]["args"], json({"report", "/out/vit"}));
  EXPECT_EQ(spec["containers"][1]["args"], json({"report", "/out/vit", "--html"}));
  EXPECT_EQ(spec["nodeSelector"]["pool"], "storage");
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_GT(spec["activeDeadlineSeconds"], 0);
  EXPECT_EQ((*pod)["metadata"]["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ((*pod)["metadata"]["namespace"], "team-a");
}

TEST(ReaderPod, SatisfiesTheProfileRestricted) {
  const auto pod = ReaderPod(JobWith(WithClaim()), "vit-report-1", "/out", "");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_THAT(children::RestrictedViolations(*pod), ::testing::IsEmpty());
}

TEST(ReaderPod, TakesTheHeadsImageUnlessAnotherIsGiven) {
  json spec = WithClaim();
  spec["containers"][0]["image"] = "registry/hetero-runtime:7";
  const auto image = [&](const std::string& given) -> std::string {
    return (*ReaderPod(JobWith(spec), "r", "/out", given))["spec"]["containers"][0]["image"];
  };
  EXPECT_EQ(image(""), "registry/hetero-runtime:7");
  EXPECT_EQ(image("mine:1"), "mine:1");
}

TEST(ReaderPod, SaysWhatIsMissing) {
  const auto message = [](const json& spec, const std::string& folder) {
    return std::string(ReaderPod(JobWith(spec), "r", folder, "").status().message());
  };
  EXPECT_THAT(message(json::object(), "/out"), HasSubstr("no volume mounted there"));
  EXPECT_THAT(message(WithClaim(), "/outside"), HasSubstr("no volume mounted there"));
  json in_pod = WithClaim();
  in_pod["volumes"][0] = {{"name", "out"}, {"emptyDir", json::object()}};
  EXPECT_THAT(message(in_pod, "/out"), HasSubstr("volume out lives in the pod"));
}

TEST(ReaderPod, ReadsTemplatesOfAnyShape) {
  for (const json& spec : {json(), json(7), json({{"containers", "none"}}),
                           json({{"containers", {7, json::object()}}, {"volumes", {"a"}}})}) {
    EXPECT_FALSE(ReaderPod(JobWith(spec), "r", "/out", "").ok());
  }
}

}  // namespace
}  // namespace hetero::cli
