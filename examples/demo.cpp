// The demo: `demo` learns prose, `demo hops` to follow pointers, `demo mixtures` compares mixtures. All leave a report.html.
#include <cstring>

#include "support/demo_hops.hpp"
#include "support/demo_mixtures.hpp"
#include "support/demo_prose.hpp"

int main(int count, char** values) {
  return examples::guarded(count, values, [&] {
    if (count > 1 && std::strcmp(values[1], "hops") == 0) {
      examples::arguments args(
          count - 1, values + 1,
          "Pointer chasing: trains a model to follow 1 to 6 pointers, one hop a recurrence step, and asks it for 32.");
      return examples::demo_hops(args);
    }
    if (count > 1 && std::strcmp(values[1], "mixtures") == 0) {
      examples::arguments args(
          count - 1, values + 1,
          "Mixtures: trains a depth-recurrent mixture of experts with attention over depth, one without, and a layered one of\n"
          "the same parameters and FLOPs on a task of reasoning, and shows what they learn and which experts and depths they\n"
          "use. Ctrl-C saves; the same command goes on.");
      return examples::demo_mixtures(args);
    }
    examples::arguments args(
        count, values,
        "Trains two small recurrent-depth models on prose, one with a random number of steps and one with a single step,\n"
        "compares them on held-out text at several depths, lets them speak, and writes report.html. `demo hops --help`\n"
        "and `demo mixtures --help` tell of the other demos.");
    return examples::demo_prose(args);
  });
}
