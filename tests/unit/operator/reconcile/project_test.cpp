#include "operator/reconcile/project.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Runtime = plan::ObservedPod::Runtime;

// Objects as a Kubernetes 1.34 server gave them, shortened.
constexpr char kPod[] = R"({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "vit-cpu-1", "namespace": "team", "uid": "c0eab4cf", "resourceVersion": "213",
    "creationTimestamp": "2026-01-01T10:00:00Z",
    "labels": {"training.hetero.dev/job-uid": "add86741", "training.hetero.dev/role": "cpu",
      "training.hetero.dev/replica-index": "1", "training.hetero.dev/attempt": "2"},
    "annotations": {"training.hetero.dev/incarnation": "1767261600000000001"},
    "ownerReferences": [
      {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "other"},
      {"apiVersion": "training.hetero.dev/v1alpha1", "kind": "HeteroTrainingJob", "name": "vit",
       "uid": "add86741", "controller": true, "blockOwnerDeletion": true}],
    "managedFields": [{"manager": "hetero-operator", "operation": "Update", "fieldsV1": {}}]},
  "spec": {"nodeName": "node-7", "containers": [{"name": "runtime", "image": "x"}]},
  "status": {"phase": "Running", "qosClass": "Burstable",
    "conditions": [
      {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T10:00:05Z"},
      {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T10:00:09Z"}],
    "initContainerStatuses": [{"name": "fetch", "state": {"terminated": {"exitCode": 0}}}],
    "containerStatuses": [
      {"name": "sidecar", "state": {"running": {"startedAt": "2026-01-01T10:00:08Z"}}},
      {"name": "runtime", "restartCount": 0, "lastState": {"terminated": {"exitCode": 9}},
       "state": {"running": {"startedAt": "2026-01-01T10:00:08Z"}}}]}})";

constexpr char kJob[] = R"({
  "apiVersion": "training.hetero.dev/v1alpha1", "kind": "HeteroTrainingJob",
  "metadata": {"name": "vit", "namespace": "team", "uid": "add86741", "resourceVersion": "77",
    "generation": 3, "creationTimestamp": "2026-01-01T10:00:00Z", "labels": {"a": "b"},
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]},
  "spec": {
    "dataset": {"uri": "synthetic://", "samples": 64, "classes": 10,
                "image": {"height": 8, "width": 8, "channels": 3}},
    "pipeline": [{"op": "Normalize"}],
    "training": {"model": {"name": "mlp"}, "batchSizePerWorker": 4, "maxSteps": 10},
    "roles": [{"name": "head", "type": "Head"}, {"name": "cpu", "type": "CPUWorker", "replicas": 2},
      {"name": "gpu", "type": "GPUWorker",
       "template": {"spec": {"containers": [{"name": "runtime", "resources": {"limits": {"cpu": 2}}}]}}}]},
  "status": {"observedGeneration": 3, "attempt": 2, "restarts": 1, "registered": "2/3",
    "conditions": [{"type": "Running", "status": "True", "reason": "Training", "message": "",
      "observedGeneration": 3, "lastTransitionTime": "2026-01-01T10:00:00Z"}],
    "progress": {"epoch": 1, "step": 4, "loss": 0.5}}})";

constexpr char kService[] = R"({
  "metadata": {"name": "vit-head", "namespace": "team", "uid": "55", "deletionTimestamp": "2026-01-01T10:00:00Z",
    "labels": {"training.hetero.dev/job-uid": "add86741"},
    "ownerReferences": [{"kind": "HeteroTrainingJob", "name": "vit", "uid": "add86741",
                         "controller": true}]},
  "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 7070}]},
  "data": {"ca.crt": "PEM", "job.json": "{}"}})";

constexpr char kNode[] = R"({
  "metadata": {"name": "node-7"},
  "status": {"conditions": [
    {"type": "MemoryPressure", "status": "False"},
    {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T10:00:00Z"}]}})";

base::WallTime At(int seconds) {
  return *api::ParseTime("2026-01-01T10:00:00Z") + std::chrono::seconds(seconds);
}

std::shared_ptr<const plan::ObservedPod> WithStatus(const std::string& status) {
  json pod = json::parse(kPod);
  pod["status"] = json::parse(status);
  return ProjectPod(pod);
}

TEST(ProjectPodTest, ReadsARunningPod) {
  const auto pod = ProjectPod(json::parse(kPod));
  EXPECT_EQ(pod->name, "vit-cpu-1");
  EXPECT_EQ(pod->uid, "c0eab4cf");
  EXPECT_EQ(pod->owner_uid, "add86741");
  EXPECT_EQ(pod->name_space, "team");
  EXPECT_TRUE(pod->labelled);
  EXPECT_EQ(pod->role, "cpu");
  EXPECT_EQ(pod->index, 1);
  EXPECT_EQ(pod->attempt, 2);
  EXPECT_EQ(pod->incarnation, 1767261600000000001);
  EXPECT_EQ(pod->node, "node-7");
  EXPECT_EQ(pod->phase, "Running");
  EXPECT_EQ(pod->created, At(0));
  EXPECT_EQ(pod->deletion_time, std::nullopt);
  EXPECT_TRUE(pod->ready);
  EXPECT_EQ(pod->waiting_reason, "");
  EXPECT_EQ(pod->runtime, Runtime::kRunning);
  EXPECT_FALSE(pod->ended());
}

TEST(ProjectPodTest, AnAttemptThatNoJobCanHaveHadIsNone) {
  for (const char* label : {"-1", "0", "2147483647", "1000000001", "99999999999", "two", "2 "}) {
    json pod = json::parse(kPod);
    pod["metadata"]["labels"]["training.hetero.dev/attempt"] = label;
    EXPECT_EQ(ProjectPod(pod)->attempt, 0) << label;
  }
}

TEST(ProjectPodTest, WhatOnlyAFinalizerHoldsIsToldApart) {
  json pod = json::parse(kPod);
  pod["metadata"]["finalizers"] = {"example.com/keep", 7};
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T10:00:30Z";
  pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  EXPECT_FALSE(ProjectPod(pod)->forced);
  pod["metadata"]["deletionGracePeriodSeconds"] = 0;
  EXPECT_TRUE(ProjectPod(pod)->forced);
  EXPECT_EQ(ProjectPod(pod)->waiting_message,
            "held by finalizers (example.com/keep): who set them has to remove them");
}

TEST(ProjectPodTest, APodOfAnotherOwnerThanItsLabelSaysIsNotSelectable) {
  json pod = json::parse(kPod);
  pod["metadata"]["labels"]["training.hetero.dev/job-uid"] = "somebody-else";
  EXPECT_FALSE(ProjectPod(pod)->labelled);
  EXPECT_EQ(ProjectPod(pod)->owner_uid, "add86741");
}

TEST(ProjectPodTest, UnreadyIsOnlyWhoseOwnProbesFailAfterItWasReady) {
  const auto with = [](const char* transition, bool ready) {
    json pod = json::parse(kPod);
    pod["status"]["conditions"][1]["status"] = "False";
    pod["status"]["conditions"][1]["lastTransitionTime"] = transition;
    pod["status"]["containerStatuses"][1]["ready"] = ready;
    return ProjectPod(pod)->unready_since;
  };
  EXPECT_EQ(ProjectPod(json::parse(kPod))->unready_since, std::nullopt);
  EXPECT_EQ(with("2026-01-01T10:02:00Z", false), At(120));
  EXPECT_EQ(with("2026-01-01T10:00:08Z", false), std::nullopt) << "it never was ready";
  EXPECT_EQ(with("2026-01-01T10:00:05Z", false), std::nullopt) << "it never was ready";
  EXPECT_EQ(with("2026-01-01T10:02:00Z", true), std::nullopt) << "a sidecar is not";
}

TEST(ProjectPodTest, TheRuntimeContainerDecidesWhateverASidecarDoes) {
  const auto pod = WithStatus(R"({"phase": "Running", "containerStatuses": [
    {"name": "sidecar", "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    {"name": "runtime", "state": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled",
     "message": "last words", "finishedAt": "2026-01-01T10:01:00Z"}}}]})");
  EXPECT_TRUE(pod->failed());
  EXPECT_EQ(pod->exit_code, 137);
  EXPECT_EQ(pod->signal, 9);
  EXPECT_EQ(pod->reason, "OOMKilled");
  EXPECT_EQ(pod->message, "last words");
  EXPECT_EQ(pod->finished, At(60));
  EXPECT_EQ(pod->waiting_reason, "");
}

TEST(ProjectPodTest, SaysWhyAPodIsNotScheduled) {
  const auto pod = WithStatus(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled",
    "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: no nvidia.com/gpu",
    "lastTransitionTime": "2026-01-01T10:00:07Z"}]})");
  EXPECT_EQ(pod->waiting_reason, "Unschedulable");
  EXPECT_EQ(pod->waiting_message, "0/3 nodes: no nvidia.com/gpu");
  EXPECT_EQ(pod->waiting_since, At(7));
}

TEST(ProjectPodTest, SaysWhyAContainerDoesNotStart) {
  for (const std::string reason :
       {"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError"}) {
    const auto pod = WithStatus(
        R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True",
        "lastTransitionTime": "2026-01-01T10:00:05Z"}], "containerStatuses": [
        {"name": "runtime", "state": {"waiting": {"reason": ")" +
        reason + R"(", "message": "said the kubelet"}}}]})");
    EXPECT_EQ(pod->waiting_reason, reason);
    EXPECT_EQ(pod->waiting_message, "said the kubelet");
    EXPECT_EQ(pod->waiting_since, At(5));
    EXPECT_FALSE(pod->failed());
  }
  const auto creating = WithStatus(R"({"phase": "Pending", "containerStatuses": [
    {"name": "runtime", "state": {"waiting": {"reason": "ContainerCreating"}}}]})");
  EXPECT_EQ(creating->waiting_reason, "");
  const auto init = WithStatus(R"({"phase": "Pending", "initContainerStatuses": [
    {"name": "fetch", "state": {"waiting": {"reason": "ErrImagePull"}}}], "containerStatuses": [
    {"name": "runtime", "state": {"waiting": {"reason": "PodInitializing"}}}]})");
  EXPECT_EQ(init->waiting_reason, "ErrImagePull");
  EXPECT_THAT(init->waiting_message, HasSubstr("fetch"));
}

TEST(ProjectPodTest, AFailedInitContainerFailsThePod) {
  const auto pod = WithStatus(R"({"phase": "Failed", "initContainerStatuses": [
    {"name": "fetch", "state": {"terminated": {"exitCode": 3, "reason": "Error",
     "message": "no such bucket"}}}], "containerStatuses": [
    {"name": "runtime", "state": {"waiting": {"reason": "PodInitializing"}}}]})");
  EXPECT_TRUE(pod->failed());
  EXPECT_EQ(pod->exit_code, 3);
  EXPECT_THAT(pod->message, HasSubstr("init container fetch"));
  EXPECT_THAT(pod->message, HasSubstr("no such bucket"));
}

TEST(ProjectPodTest, ThePodsOwnReasonGoesBeforeTheContainers) {
  const auto pod = WithStatus(R"({"phase": "Failed", "reason": "Evicted",
    "message": "The node was low on resource: memory.",
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}],
    "containerStatuses": [{"name": "runtime", "state": {"terminated": {"exitCode": 137,
     "reason": "Error", "message": "killed"}}}]})");
  EXPECT_TRUE(pod->failed());
  EXPECT_TRUE(pod->disrupted);
  EXPECT_EQ(pod->reason, "Evicted");
  EXPECT_EQ(pod->message, "The node was low on resource: memory.");
  for (const std::string reason : {"NodeLost", "Shutdown", "Preempting"}) {
    const auto never_ran = WithStatus(R"({"phase": "Failed", "reason": ")" + reason + R"("})");
    EXPECT_EQ(never_ran->reason, reason);
    EXPECT_TRUE(never_ran->failed());
  }
}

// A verdict is never lost, not even to an eviction that came later.
TEST(ProjectPodTest, AVerdictStaysTheMessage) {
  const auto pod = WithStatus(R"({"phase": "Failed", "reason": "Evicted", "message": "memory",
    "containerStatuses": [{"name": "runtime", "state": {"terminated": {"exitCode": 1,
     "message": "{\"state\": \"Failed\"}"}}}]})");
  EXPECT_EQ(pod->message, "{\"state\": \"Failed\"}");
}

TEST(ProjectPodTest, ATimeThatCannotBeReadStillMeansTerminating) {
  json object = json::parse(kPod);
  object["metadata"]["deletionTimestamp"] = "soon";
  EXPECT_TRUE(ProjectPod(object)->deletion_time.has_value());
  object["metadata"]["deletionTimestamp"] = "2026-01-01T10:00:30Z";
  EXPECT_EQ(ProjectPod(object)->deletion_time, At(30));
}

TEST(ProjectJobTest, ReadsSpecAndStatus) {
  const auto job = ProjectJob(json::parse(kJob), nullptr);
  EXPECT_TRUE(job->errors.empty()) << api::FormatErrors(job->errors);
  EXPECT_EQ(job->job.metadata.name, "vit");
  EXPECT_EQ(job->job.metadata.name_space, "team");
  EXPECT_EQ(job->job.metadata.uid, "add86741");
  EXPECT_EQ(job->job.spec.roles.size(), 3u);
  EXPECT_EQ(job->status.attempt, 2);
  EXPECT_TRUE(job->status.Is(api::ConditionType::kRunning));
  EXPECT_EQ(job->resource_version, "77");
  EXPECT_EQ(job->generation, 3);
  EXPECT_FALSE(job->deleting);
}

TEST(ProjectJobTest, ASpecOfTheSameGenerationIsNotParsedAgain) {
  json object = json::parse(kJob);
  const auto first = ProjectJob(object, nullptr);
  object["spec"] = json::object();  // cannot happen: shows that it is not looked at
  object["status"]["attempt"] = 3;
  const auto second = ProjectJob(object, first);
  EXPECT_TRUE(second->errors.empty());
  EXPECT_EQ(second->status.attempt, 3);
  object["metadata"]["generation"] = 4;
  EXPECT_FALSE(ProjectJob(object, second)->errors.empty());
  object["metadata"]["generation"] = 3;
  object["metadata"]["uid"] = "another job of that name";
  EXPECT_FALSE(ProjectJob(object, second)->errors.empty());
}

// Labels change without a new generation: a queue's is looked for when a job is resumed.
TEST(ProjectJobTest, LabelsAreThoseOfNow) {
  json object = json::parse(kJob);
  object["metadata"]["labels"] = {{"a", "b"}};
  const auto first = ProjectJob(object, nullptr);
  EXPECT_EQ(first->job.metadata.labels.at("a"), "b");
  object["metadata"]["labels"] = {{"c", "d"}, {"e", 7}};
  const auto second = ProjectJob(object, first);
  EXPECT_EQ(second->job.metadata.labels, (std::map<std::string, std::string>{{"c", "d"}}));
}

TEST(ProjectJobTest, FieldsOfANewerDefinitionAreNoErrors) {
  json object = json::parse(kJob);
  object["spec"]["training"]["ema"] = 0.5;
  const auto job = ProjectJob(object, nullptr);
  EXPECT_TRUE(job->errors.empty()) << api::FormatErrors(job->errors);
  EXPECT_EQ(job->unknown_fields, std::vector<std::string>{"spec.training.ema"});
  EXPECT_EQ(ProjectJob(object, job)->unknown_fields, job->unknown_fields);
}

TEST(ProjectJobTest, AWrongSpecStillHasANameAndErrors) {
  json object = json::parse(kJob);
  object["spec"]["training"]["maxSteps"] = -1;
  const auto job = ProjectJob(object, nullptr);
  EXPECT_FALSE(job->errors.empty());
  EXPECT_EQ(job->job.metadata.name, "vit");
  EXPECT_EQ(job->job.metadata.name_space, "team");
  EXPECT_EQ(job->job.metadata.uid, "add86741");
}

TEST(ProjectJobTest, AStatusThatCannotBeReadIsEmpty) {
  json object = json::parse(kJob);
  object["status"]["attempt"] = "two";
  EXPECT_EQ(ProjectJob(object, nullptr)->status, api::JobStatus());
}

TEST(ProjectTest, ReadsServiceConfigMapAndNode) {
  const auto object = ProjectObject(json::parse(kService));
  EXPECT_EQ(object->name, "vit-head");
  EXPECT_EQ(object->uid, "55");
  EXPECT_EQ(object->owner_uid, "add86741");
  EXPECT_EQ(object->name_space, "team");
  EXPECT_TRUE(object->deleting);
  EXPECT_EQ(object->cluster_ip, "10.96.0.7");
  EXPECT_EQ(object->ca_pem, "PEM");
  const auto node = ProjectNode(json::parse(kNode));
  EXPECT_EQ(node->name, "node-7");
  EXPECT_FALSE(node->ready);
  EXPECT_EQ(node->since, At(0));
}

// Every value inside, the root included.
void Collect(json& value, std::vector<json*>& values) {
  values.push_back(&value);
  if (!value.is_structured()) return;
  for (json& inner : value) Collect(inner, values);
}

json Surprise(std::mt19937& random) {
  static const std::vector<json> surprises = {
      nullptr,
      true,
      false,
      0,
      -1,
      3.5e300,
      18446744073709551615ULL,
      "",
      "x",
      "\xff\xfe",
      std::string(5000, 'y'),
      "2026-13-45T99:99:99Z",
      json::array(),
      json::object(),
      json::array({nullptr, 1, "a", json::array(), json::object()}),
      json::object({{"name", 1}, {"type", json::array()}, {"state", "x"}, {"uid", nullptr}})};
  return surprises[random() % surprises.size()];
}

void Mutate(json& object, std::mt19937& random) {
  std::vector<json*> values;
  Collect(object, values);
  json& target = *values[random() % values.size()];
  if (target.is_structured() && !target.empty() && random() % 3 == 0) {
    auto it = target.begin();
    std::advance(it, random() % target.size());
    target.erase(it);
  } else {
    target = Surprise(random);
  }
}

void ProjectAll(const json& object) {
  static const auto previous = ProjectJob(json::parse(kJob), nullptr);
  ASSERT_NE(ProjectPod(object), nullptr);
  ASSERT_NE(ProjectObject(object), nullptr);
  ASSERT_NE(ProjectNode(object), nullptr);
  ASSERT_NE(ProjectJob(object, previous), nullptr);
}

TEST(ProjectTest, TenThousandMutationsNeverCrash) {
  std::mt19937 random(7);
  const std::vector<json> objects = {json::parse(kPod), json::parse(kJob), json::parse(kService),
                                     json::parse(kNode)};
  for (int i = 0; i < 10'000; ++i) {
    json object = objects[i % objects.size()];
    const int mutations = 1 + static_cast<int>(random() % 4);
    for (int m = 0; m < mutations; ++m) Mutate(object, random);
    ASSERT_NO_THROW(ProjectAll(object))
        << object.dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

TEST(ProjectTest, NoTypeAtAnyPlaceCrashes) {
  for (const char* text : {kPod, kJob, kService, kNode}) {
    json object = json::parse(text);
    std::vector<json*> values;
    Collect(object, values);
    for (size_t place = 0; place < values.size(); ++place) {
      for (const json& wrong : {json(), json(1), json("x"), json(true), json::array({1}),
                                json::object({{"a", 1}}), json(-2.5)}) {
        json changed = json::parse(text);
        std::vector<json*> inner;
        Collect(changed, inner);
        *inner[place] = wrong;
        ASSERT_NO_THROW(ProjectAll(changed)) << changed.dump();
      }
    }
  }
}

}  // namespace
}  // namespace hetero::reconcile
