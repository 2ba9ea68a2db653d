#include "runtime/install/launcher.h"

#include <cstddef>

__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "hetero_launcher_begin:\n"
    ".incbin \"" HETERO_LAUNCHER
    "\"\n"
    "hetero_launcher_end:\n"
    ".global hetero_launcher_begin, hetero_launcher_end\n"
    ".hidden hetero_launcher_begin, hetero_launcher_end\n"
    ".popsection\n");

extern "C" {
extern const char hetero_launcher_begin[] __attribute__((visibility("hidden")));
extern const char hetero_launcher_end[] __attribute__((visibility("hidden")));
}

namespace hetero::install {

std::string_view Launcher() {
  return {hetero_launcher_begin, static_cast<size_t>(hetero_launcher_end - hetero_launcher_begin)};
}

}  // namespace hetero::install
