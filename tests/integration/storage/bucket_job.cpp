#include "tests/integration/storage/bucket_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hetero::storage {
std::string ManifestOf(const std::string& uri) {
  return absl::StrCat(R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: bucket}
spec:
  dataset: {uri: ")",
                      uri, R"("}
  pipeline: [{op: Decode}, {op: Resize, size: {height: 8, width: 8}}, {op: HorizontalFlip}, {op: Normalize}]
  training: {model: {name: mlp}, batchSizePerWorker: 4, epochs: 2, seed: 7}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 2}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}
)");
}

std::vector<std::string> Pictures() {
  const std::filesystem::path root = absl::StrCat(kDatasets, "image_folder");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(root).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ListOfPictures(const std::string& prefix) {
  nlohmann::json list = {{{"prefix", prefix}}};
  for (const std::string& name : Pictures()) list.push_back(name);
  return list.dump();
}

std::string TableOfPictures(const std::string& prefix) {
  std::string table = "path,label\r\n";
  for (const std::string& name : Pictures()) {
    absl::StrAppend(&table, prefix, name, ",", name.substr(0, name.find('/')), "\r\n");
  }
  return table;
}

}  // namespace hetero::storage
