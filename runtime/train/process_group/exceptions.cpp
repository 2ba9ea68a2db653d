#include "runtime/train/process_group/exceptions.h"

#include <c10/util/Exception.h>

#include <new>
#include <typeinfo>

#include "absl/strings/match.h"

namespace hetero::train {
namespace {

// Gloo's exceptions are not declared in LibTorch's headers. Their names are as the Itanium ABI
// writes names of namespace gloo.
bool IsGloos(const std::exception& error) {
  return absl::StartsWith(typeid(error).name(), "N4gloo");
}

// LibTorch wraps some of Gloo's exceptions into its own.
bool WrapsGloos(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  if (own == nullptr) return false;
  const std::string what = own->what_without_backtrace();
  return absl::StrContains(what, "gloo") || absl::StrContains(what, "Gloo");
}

}  // namespace

std::string MessageOf(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  return own != nullptr ? own->what_without_backtrace() : error.what();
}

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return true;
  }
  if (dynamic_cast<const c10::Error*>(&error) == nullptr &&
      dynamic_cast<const std::runtime_error*>(&error) == nullptr) {
    return false;
  }
  // LibTorch's allocator for the CPU, its CUDA calls, cuBLAS and cuDNN have no type for it. The
  // TorchScript interpreter passes on only what they said.
  const std::string what = error.what();
  for (const char* text :
       {"DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory",
        "CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED"}) {
    if (absl::StrContains(what, text)) return true;
  }
  return false;
}

bool CameFromCollective(const std::exception& error) {
  return dynamic_cast<const CollectiveError*>(&error) != nullptr ||
         dynamic_cast<const c10::DistError*>(&error) != nullptr || IsGloos(error) ||
         WrapsGloos(error);
}

void RethrowFromCollective(const std::exception& error) {
  if (IsOutOfMemory(error) || dynamic_cast<const CollectiveError*>(&error) != nullptr) throw;
  const bool libtorchs = dynamic_cast<const c10::Error*>(&error) != nullptr;
  if (libtorchs && !CameFromCollective(error)) throw;
  throw CollectiveError(MessageOf(error));
}

}  // namespace hetero::train
