// Memory: a recurrence that keeps one across its steps (a carry), and a device that runs short of it. [own_unit]
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

/// Gives no piece of memory beyond a limit.
struct limited : gyre::reference {
  std::size_t* most = nullptr;
  std::byte* allocate(std::size_t bytes) {
    if (most != nullptr && bytes > *most) throw std::bad_alloc();
    return gyre::reference::allocate(bytes);
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

TEST_CASE("a request that is too large for the memory harms no other", "[generator]") {
  std::size_t most = std::size_t{1} << 30;
  limited device;
  device.most = &most;
  const auto net = make_net<ConcatGrouped, gyre::fp64, limited>(5, device);
  const auto text = random_tokens(20, plain.vocab, 1);
  const std::span<const gyre::token> small = std::span(text).first(3);
  gyre::generator<ConcatGrouped, limited, gyre::fp64> alone(net), generator(net);
  const auto expected = alone.start(request_of(small, 3, 1));
  alone.run();

  const auto id = generator.start(request_of(small, 3, 1));
  generator.advance(), generator.advance();
  const auto large = generator.start(request_of(text, 3, 2));
  most = 16000;  // the cache is there; the prompt's pass does not fit
  CHECK_THROWS_AS(generator.run(), std::bad_alloc);
  CHECK_THROWS_AS(generator.run(), std::bad_alloc);
  generator.cancel(large);
  generator.run();
  CHECK(generator.take(id).log_probabilities == alone.take(expected).log_probabilities);
  CHECK(generator.take(large).tokens.empty());
  CHECK_THROWS_AS(generator.start(request_of(text, 3000, 2)), std::bad_alloc);
}
