#include <catch2/catch.hpp>

#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/catalogue.hpp>

namespace {
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
inline constexpr gyre::dims more{.vocab = 9, .width = 8, .heads = 4, .mlp = 6, .context = 5};
template <gyre::dims D>
struct Model : gyre::model<D, gyre::recurrent<gyre::sandwich_block<gyre::sequence_attention<D>, gyre::gated_mlp<D>>>> {};
using known = gyre::catalogue<gyre::entry<"seven", Model<sizes>>, gyre::entry<"nine", Model<more>>>;
int vocabulary(std::string_view name) {
  return known::visit(name, []<class A>() { return A::shape.vocab; });
}
}  // namespace

TEST_CASE("a catalogue finds models by name and lists them when it cannot") {
  CHECK(vocabulary("seven") == 7);
  CHECK(vocabulary("nine") == 9);
  CHECK(known::names() == std::vector<std::string_view>{"seven", "nine"});
  CHECK_THROWS_WITH(vocabulary("eight"), "catalogue: no model is named 'eight'; compiled in are: seven, nine");
}
