// A recurrence with a memory across its steps (a carry) is generated from, and its depths differ by sequence.
#include <catch2/catch.hpp>

#include <gyre/compose/chain.hpp>
#include <gyre/generate/generator.hpp>

#include "generate/support.hpp"

namespace {

using namespace gyre_test;

/// y = x + the sum of what all steps so far have read. Of no use but to have a memory; written in operations, so that it plans.
template <int Width>
struct remembering {
  static constexpr int inputs = Width, outputs = Width;
  static constexpr gyre::index parameter_count = 0;
  template <class P>
  struct tape {};
  template <class P>
  struct carry {
    gyre::activation_t<P>* slots = nullptr;  // (steps, tokens, width)
  };
  template <class V>
  static constexpr void visit(V&, const gyre::path&) {}
  template <class B, class P>
  static void open_carry(gyre::context<B, P>&, gyre::arena& memory, gyre::index tokens, int steps, carry<P>& k) {
    k.slots = memory.template take<gyre::activation_t<P>>(steps * tokens * Width);
  }
  template <class B, class P>
  static void forward(gyre::context<B, P>& c, gyre::weights<B, P>, gyre::rows<const gyre::activation_t<P>, Width> x,
                      gyre::rows<gyre::activation_t<P>, Width> y, tape<P>&, carry<P>& k) {
    using T = gyre::activation_t<P>;
    const auto slot = [&](int step) { return gyre::rows<T, Width>{k.slots + step * x.size(), x.count}.view(); };
    c.device.copy(x.view(), slot(c.step));
    c.device.copy(x.view(), y.view());
    for (int step = 0; step <= c.step; ++step) c.device.add(gyre::matrix_view<const T>(slot(step)), y.view());
  }
};

struct Remembering : gyre::model<plain, gyre::prelude<Block<plain>>,
                                 gyre::recurrent<gyre::chain<remembering<plain.width>, Block<plain>>, gyre::inject::add>> {};

gyre::generation_request request_of(std::span<const gyre::token> prompt, gyre::exits::any exit, std::uint64_t key) {
  gyre::generation_request r;
  r.prompt = prompt, r.exit = exit, r.key = key, r.max_new = 9, r.choose.greedy = true, r.of = gyre::seed{7};
  return r;
}

}  // namespace

TEST_CASE("a memory across steps serves batches of different depths", "[generator]") {
  const auto net = make_net<Remembering>(5);
  std::vector<std::vector<gyre::token>> texts;
  for (std::uint32_t i = 0; i < 3; ++i) texts.push_back(random_tokens(3 + i, plain.vocab, i));
  gyre::generator generator(net);
  const gyre::exits::any rules[] = {4, 2, gyre::exits::latent_diff{.below = 0.2f, .cap = 7}};
  for (std::uint32_t i = 0; i < 3; ++i) generator.start(request_of(texts[i], rules[i], i));
  generator.run();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto result = generator.take(i + 1);
    for (const gyre::token expected : result.tokens) {
      const auto logits =
          full_logits(net, std::span<const gyre::token>(texts[i]), i, {gyre::seed{7}, 0, 1}, rules[i].most_steps());
      const double* z = logits[static_cast<gyre::index>(texts[i].size()) - 1];
      CHECK(expected == std::max_element(z, z + plain.vocab) - z);
      texts[i].push_back(expected);
    }
  }
  const auto exiting = generator.take(3).steps;
  CHECK(*std::min_element(exiting.begin(), exiting.end()) < 7);

  // Tokens of one sequence that leave one by one would have to take their memory along.
  auto r = request_of(texts[2], rules[2], 2);
  r.exit_in_prompt = true;
  generator.start(r);
  CHECK_THROWS_WITH(generator.run(), Catch::Contains("exit_in_prompt must be off"));
}
