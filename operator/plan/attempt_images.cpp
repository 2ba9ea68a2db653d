#include "operator/plan/attempt_images.h"

#include <string>

#include "operator/children/children.h"

namespace hetero::plan {
namespace {

// Of a pod of the attempt, living or not, whose image is not its template's own; empty: there is
// none.
std::string ImageOfPods(const Pass& pass, bool trains) {
  for (const Slot& slot : pass.slots) {
    const bool trainer = slot.role->type == api::RoleType::kGpuWorker;
    if (slot.pod == nullptr || trainer != trains || slot.pod->image.empty()) continue;
    if (!children::NamesRuntimeImage(*slot.role)) return slot.pod->image;
  }
  return {};
}

void Complete(const Pass& pass, bool trains, const std::string& usual, std::string& image) {
  if (!image.empty()) return;
  image = ImageOfPods(pass, trains);
  if (image.empty()) image = usual;
}

}  // namespace

void RememberImages(Pass& pass) {
  api::AttemptImages& images =
      pass.status.images ? *pass.status.images : pass.status.images.emplace();
  Complete(pass, /*trains=*/false, pass.settings.runtime_image, images.runtime);
  Complete(pass, /*trains=*/true, pass.settings.trainer_image, images.trainer);
}

}  // namespace hetero::plan
