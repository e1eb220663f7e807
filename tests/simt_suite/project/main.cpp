// Runs every kernel in several orders of its threads: no correct one may be blamed, and no fault may be missed in any order.
#include <cstdio>

#include "suite.hpp"

namespace {

namespace simt = gyre::simt;

int missed = 0, false_reports = 0, correct = 0, wrong = 0, placeless = 0;

void run(const suite::kernel_case& c) {
  ++(c.wrong ? wrong : correct);
  struct {
    simt::thread_order order;
    unsigned seed;
  } const orders[] = {{simt::thread_order::forward, 1},
                      {simt::thread_order::reverse, 1},
                      {simt::thread_order::random, 1},
                      {simt::thread_order::random, 2}};
  for (const auto& [order, seed] : orders) {
    simt::machine m;
    m.settings.order = order;
    m.settings.seed = seed;
    m.settings.throws = false;
    c.run(m);
    bool found = false;
    for (const simt::fault& f : m.faults()) {
      found = found || f.kind == c.wrong;
      // Limits of a launch have no line in a kernel.
      if (f.place.line == 0 && f.kind != simt::fault_kind::launch_limit)
        ++placeless, std::printf("no line: %s\n", f.text.c_str());
      if (f.kernel.starts_with("at ")) ++placeless, std::printf("no kernel: %s\n", f.text.c_str());
    }
    if (c.wrong && !found) {
      ++missed;
      std::printf("MISSED %s in order %d seed %u\n", c.name, static_cast<int>(order), seed);
    }
    if (!c.wrong && !m.faults().empty()) ++false_reports;
    if ((!c.wrong || !found) && !m.faults().empty())
      for (const simt::fault& f : m.faults()) std::printf("%s: %s\n", c.name, f.text.c_str());
  }
}

}  // namespace

int main() {
  if (!simt::machine::watches_accesses()) {
    std::puts("the suite is not instrumented");
    return 1;
  }
  for (const auto& cases :
       {suite::correct_blocks(), suite::correct_warps(), suite::wrong_order(), suite::wrong_barriers(), suite::wrong_memory()})
    for (const suite::kernel_case& c : cases) run(c);
  suite::check_costs();
  std::printf("%d correct kernels, %d wrong ones, 4 orders each: %d false reports, %d missed, %d without a line\n", correct,
              wrong, false_reports, missed, placeless);
  return missed + false_reports + placeless == 0 && correct >= 15 && wrong >= 25 ? 0 : 1;
}
