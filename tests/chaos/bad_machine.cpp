// Preloaded into the programs of a round of tests/chaos: a machine whose wall clock is set while
// they run, and whose disk is slow or full. HETERO_CHAOS_MACHINE names the file through which the
// round says so, at any time (struct Machine); HETERO_CHAOS_FOLDER names the folder that lies on
// the bad disk; HETERO_CHAOS_MEMBER ("cpu-1") the only member that is on this machine. What waits
// until a wall-clock time waits as long as it wanted: a real step would also shorten or lengthen
// waits under way.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Machine {
  std::atomic<int64_t> clock_offset_ns;
  std::atomic<int64_t> sync_delay_ms;
  std::atomic<int64_t> disk_full;  // 1: no byte more
};

bool IsHere() {
  const char* member = getenv("HETERO_CHAOS_MEMBER");
  if (member == nullptr) return true;
  const char* role = getenv("HETERO_ROLE");
  const char* index = getenv("HETERO_INDEX");
  if (role == nullptr || index == nullptr) return false;
  char name[128];
  snprintf(name, sizeof(name), "%s-%s", role, index);
  return strcmp(name, member) == 0;
}

Machine* Open() {
  static Machine sound{};
  const char* file = getenv("HETERO_CHAOS_MACHINE");
  if (file == nullptr || !IsHere()) return &sound;
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return &sound;
  void* memory = mmap(nullptr, sizeof(Machine), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? &sound : static_cast<Machine*>(memory);
}

Machine& TheMachine() {
  static Machine* const machine = Open();
  return *machine;
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

timespec Plus(const timespec& time, int64_t ns) {
  const int64_t total = int64_t{time.tv_sec} * kSecond + time.tv_nsec + ns;
  return {static_cast<time_t>(total / kSecond), static_cast<long>(total % kSecond)};
}

// As the kernel, whose clock stands where it did, has to hear it. Abseil waits until 1970 for what
// is over, and until 2262 for what never is: neither is a time by which somebody set a clock.
timespec ForKernel(const timespec& wall) {
  constexpr time_t kYear = 365 * 24 * 3600;
  if (wall.tv_sec < kYear || wall.tv_sec > 250 * kYear) return wall;
  return Plus(wall, -TheMachine().clock_offset_ns.load());
}

// Times since the start of the machine are far smaller.
bool IsWallTime(const timespec& time) { return time.tv_sec > 1'000'000'000; }

bool OnBadDisk(int fd) {
  static const char* const folder = getenv("HETERO_CHAOS_FOLDER");
  if (folder == nullptr) return false;
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return strncmp(path, folder, strlen(folder)) == 0;
}

bool Full(int fd) {
  if (TheMachine().disk_full.load() == 0 || !OnBadDisk(fd)) return false;
  errno = ENOSPC;
  return true;
}

void DelaySync(int fd) {
  const int64_t delay = TheMachine().sync_delay_ms.load();
  if (delay <= 0 || !OnBadDisk(fd)) return;
  const timespec time{static_cast<time_t>(delay / 1000),
                      static_cast<long>(delay % 1000 * 1'000'000)};
  nanosleep(&time, nullptr);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  static const auto next = Next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    *time = Plus(*time, TheMachine().clock_offset_ns.load());
  }
  return result;
}

int gettimeofday(timeval* __restrict time, void* __restrict) {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* result) {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex,
                           const timespec* __restrict until) {
  using Function = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static const auto next =
      reinterpret_cast<Function>(dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"));
  if (!IsWallTime(*until)) return next(condition, mutex, until);
  const timespec kernel = ForKernel(*until);
  return next(condition, mutex, &kernel);
}

int pthread_cond_clockwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex,
                           clockid_t clock, const timespec* __restrict until) {
  using Function = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const auto next = Next<Function>("pthread_cond_clockwait");
  if (clock != CLOCK_REALTIME) return next(condition, mutex, clock, until);
  const timespec kernel = ForKernel(*until);
  return next(condition, mutex, clock, &kernel);
}

int sem_timedwait(sem_t* __restrict semaphore, const timespec* __restrict until) {
  static const auto next = Next<int (*)(sem_t*, const timespec*)>("sem_timedwait");
  const timespec kernel = ForKernel(*until);
  return next(semaphore, &kernel);
}

// Abseil waits with futexes of its own.
long syscall(long number, ...) {
  using Function = long (*)(long, long, long, long, long, long, long);
  static const auto next = Next<Function>("syscall");
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec kernel;
  if (number == SYS_futex && (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 && arguments[3] != 0) {
    kernel = ForKernel(*reinterpret_cast<const timespec*>(arguments[3]));
    arguments[3] = reinterpret_cast<long>(&kernel);
  }
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

int fsync(int fd) {
  static const auto next = Next<int (*)(int)>("fsync");
  DelaySync(fd);
  return next(fd);
}

int fdatasync(int fd) {
  static const auto next = Next<int (*)(int)>("fdatasync");
  DelaySync(fd);
  return next(fd);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t)>("write");
  return Full(fd) ? -1 : next(fd, bytes, count);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = Next<ssize_t (*)(int, const iovec*, int)>("writev");
  return Full(fd) ? -1 : next(fd, parts, count);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return Full(fd) ? -1 : next(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return Full(fd) ? -1 : next(fd, bytes, count, offset);
}

}  // extern "C"
