// An operator that leaves pictures as they are and keeps `bytes` of memory for each, for ever.
#include <hetero/operator_plugin.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

struct Leak {
  size_t bytes;
};

// Seen from elsewhere, or the compiler would leave out what nobody reads.
std::atomic<void*> newest = nullptr;

int32_t Create(const char*, const HeteroParameter* parameters, size_t count, int32_t,
               void** instance, HeteroMessage) {
  if (count != 1) return HETERO_FAILED;
  *instance = new Leak{static_cast<size_t>(std::atoll(parameters[0].value))};
  return HETERO_OK;
}

void Destroy(void* instance) { delete static_cast<Leak*>(instance); }

int32_t Shape(const void*, HeteroShape in, HeteroShape* out, HeteroMessage) {
  *out = in;
  return HETERO_OK;
}

int32_t Apply(const void* instance, HeteroShape in, const uint8_t* pixels, const HeteroRandom*,
              HeteroShape, uint8_t* result, HeteroMessage) {
  const size_t bytes = static_cast<const Leak*>(instance)->bytes;
  void* kept = std::malloc(bytes);
  if (kept == nullptr) return HETERO_FAILED;
  std::memset(kept, 1, bytes);
  newest = kept;
  std::copy_n(pixels, size_t(in.height) * size_t(in.width) * size_t(in.channels), result);
  return HETERO_OK;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const HeteroOperatorTable* hetero_operator_table(
    void) {
  static const HeteroOperatorTable table = {HETERO_OPERATOR_ABI_VERSION, Create, Destroy, Shape,
                                            Apply};
  return &table;
}
