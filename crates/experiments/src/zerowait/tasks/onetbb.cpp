// The shapes of zerowait.tasks as tasks of oneTBB. Arguments: shape cores operations rounds width.
// Prints processor nanoseconds and nanoseconds of the second of two runs; the first warms up.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <tbb/global_control.h>
#include <tbb/queuing_mutex.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace {

std::uint64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

void link(tbb::task_group& group, std::uint64_t left) {
  if (left > 0) {
    group.run([&group, left] { link(group, left - 1); });
  }
}

void play(const char* shape, std::uint64_t operations, std::uint64_t rounds, std::uint64_t width) {
  tbb::task_group group;
  if (std::strcmp(shape, "chain") == 0) {
    link(group, operations);
    group.wait();
    return;
  }
  tbb::queuing_mutex mutex;
  std::uint64_t counter = 0;
  const bool gate = std::strcmp(shape, "gate") == 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint64_t leaf = 0; leaf < width; ++leaf) {
      if (gate) {
        group.run([&] {
          tbb::queuing_mutex::scoped_lock lock(mutex);
          ++counter;
        });
      } else {
        group.run([leaf] {
          volatile std::uint64_t sink = leaf;
          (void)sink;
        });
      }
    }
    group.wait();
  }
  if (gate && counter != rounds * width) {
    std::abort();
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fputs("usage: onetbb SHAPE CORES OPERATIONS ROUNDS WIDTH\n", stderr);
    return 2;
  }
  const auto number = [&](int index) { return std::strtoull(arguments[index], nullptr, 10); };
  const auto cores = static_cast<int>(number(2));
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(cores));
  tbb::task_arena arena(cores);
  arena.execute([&] { play(arguments[1], number(3) / 4 + 1, number(4) / 4 + 1, number(5)); });
  const auto processor = now(CLOCK_PROCESS_CPUTIME_ID);
  const auto wall = now(CLOCK_MONOTONIC);
  arena.execute([&] { play(arguments[1], number(3), number(4), number(5)); });
  std::printf("%llu %llu\n", static_cast<unsigned long long>(now(CLOCK_PROCESS_CPUTIME_ID) - processor),
              static_cast<unsigned long long>(now(CLOCK_MONOTONIC) - wall));
  return 0;
}
