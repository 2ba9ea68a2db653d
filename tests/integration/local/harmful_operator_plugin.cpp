// An operator that does harm, as its parameter `harm` says, when it meets a picture that is white:
// "abort" ends the process, "refuse" takes it for a bad picture, "throw" lets an exception cross
// the boundary of the library, which no plugin may.
#include <hetero/operator_plugin.h>

#include <algorithm>
#include <cstdlib>

namespace {

struct Harmful {
  std::string harm;
};

int32_t Create(const char*, const HeteroParameter* parameters, size_t count, int32_t,
               void** instance, HeteroMessage) {
  if (count != 1) return HETERO_FAILED;
  *instance = new Harmful{parameters[0].value};
  return HETERO_OK;
}

void Destroy(void* instance) { delete static_cast<Harmful*>(instance); }

int32_t Shape(const void*, HeteroShape in, HeteroShape* out, HeteroMessage) {
  *out = in;
  return HETERO_OK;
}

int32_t Apply(const void* instance, HeteroShape in, const uint8_t* pixels, const HeteroRandom*,
              HeteroShape, uint8_t* result, HeteroMessage) {
  const auto size = size_t(in.height) * size_t(in.width) * size_t(in.channels);
  if (std::all_of(pixels, pixels + size, [](uint8_t pixel) { return pixel == 255; })) {
    const std::string& harm = static_cast<const Harmful*>(instance)->harm;
    if (harm == "abort") std::abort();
    if (harm == "refuse") return HETERO_BAD_PICTURE;
    throw std::length_error("no picture may be white");
  }
  std::copy_n(pixels, size, result);
  return HETERO_OK;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const HeteroOperatorTable* hetero_operator_table(
    void) {
  static const HeteroOperatorTable table = {HETERO_OPERATOR_ABI_VERSION, Create, Destroy, Shape,
                                            Apply};
  return &table;
}
