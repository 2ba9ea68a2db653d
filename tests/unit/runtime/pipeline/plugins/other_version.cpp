// A plugin from the future: only the first field of its table may be read.
#include <hetero/operator_plugin.h>

extern "C" __attribute__((visibility("default"))) const HeteroOperatorTable* hetero_operator_table(
    void) {
  static const HeteroOperatorTable table = {HETERO_OPERATOR_ABI_VERSION + 1, nullptr, nullptr,
                                            nullptr, nullptr};
  return &table;
}
