#include "operator/program/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "base/thread.h"

namespace hetero::program {
namespace {

constexpr base::Duration kStart = std::chrono::seconds(3);
constexpr base::Duration kPeriod = std::chrono::minutes(1);
constexpr int kMmapThreshold = 128 * 1024;

// Only segments that are never written: theirs is the file's content, whenever it is read.
int ReleasePages(dl_phdr_info* info, size_t, void*) {
  if (std::string_view(info->dlpi_name).starts_with("linux-vdso")) return 0;  // the kernel's own
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr)* segment = info->dlpi_phdr; segment < info->dlpi_phdr + info->dlpi_phnum;
       ++segment) {
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0) continue;
    const uintptr_t address = info->dlpi_addr + segment->p_vaddr;
    // Whole pages: a segment's neighbour may be one that is written.
    const uintptr_t begin = (address + page - 1) & ~(page - 1);
    const uintptr_t end = (address + segment->p_memsz) & ~(page - 1);
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void LimitMemory() {
  mallopt(M_ARENA_MAX, 2);  // an arena per thread would cost megabytes each
  // The bodies of lists go back to the kernel at once. Without this, glibc raises the threshold
  // with the first of them.
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
}

void ReturnUnusedMemory() {
  malloc_trim(0);
  dl_iterate_phdr(ReleasePages, nullptr);
}

void KeepMemorySmall(base::Clock& clock, std::stop_token stop) {
  base::SetThreadName("memory");
  for (base::Duration wait = kStart; clock.SleepFor(wait, stop); wait = kPeriod) {
    ReturnUnusedMemory();
  }
}

}  // namespace hetero::program
