// Text of requests, and requests that cannot be served.
#include <catch2/catch.hpp>

#include <gyre/generate/stream.hpp>

#include "generate/support.hpp"

using namespace gyre_test;
using gyre::finish;

namespace {

/// Runs one request whose successive tokens stand for `pieces`, in order.
struct spoken {
  gyre::generation result;
  std::vector<std::string> parts;
};
spoken speak(std::vector<std::string> pieces, std::vector<std::string> stops, gyre::index max_new) {
  const auto net = make_net<ConcatGrouped, gyre::fp32>();
  const gyre::token prompt[] = {1, 2};
  gyre::generation_request r;
  r.prompt = prompt, r.exit = 1, r.max_new = max_new, r.stop_strings = std::move(stops);
  std::size_t next = 0;
  r.bytes = [&](gyre::token) -> std::string_view { return pieces.at(next++); };
  spoken s;
  r.on_text = [&](std::string_view part) { s.parts.emplace_back(part); };
  gyre::generator generator(net);
  const auto id = generator.start(r);
  generator.run();
  s.result = generator.take(id);
  std::string joined;
  for (const auto& part : s.parts) joined += part;
  CHECK(joined == s.result.text);
  return s;
}

}  // namespace

TEST_CASE("stop strings end the text across tokens", "[generator]") {
  const auto s = speak({"one ", "E", "tw", "o EN", "D three", "four"}, {"END", "unseen"}, 6);
  CHECK(s.result.reason == finish::stop_string);
  CHECK(s.result.text == "one Etwo ");
  CHECK(s.result.tokens.size() == 5);
  CHECK(s.parts == std::vector<std::string>{"one ", "Etw", "o "});  // what might begin a stop string waits

  const auto held = speak({"one ", "EN"}, {"END"}, 2);
  CHECK(held.result.reason == finish::length);
  CHECK(held.result.text == "one EN");  // it came to nothing
}

TEST_CASE("text never holds a piece of a character", "[generator]") {
  const auto s = speak({"gr", "\xC3", "\xBC", "\xF0\x9F", "\x8C\x80", "\xE2\x82"}, {}, 6);
  CHECK(s.parts == std::vector<std::string>{"gr", "\xC3\xBC", "\xF0\x9F\x8C\x80"});
  CHECK(s.result.tokens.size() == 6);
}

TEST_CASE("requests that cannot be served are refused with their numbers", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp32>();
  gyre::generator generator(net);
  const std::vector<gyre::token> prompt{3, 4, 5}, empty, outside{1, 23}, negative{-1}, wide(25, 1);
  const auto refused = [&](auto change, const char* words) {
    gyre::generation_request r;
    r.prompt = prompt, r.exit = 4, r.max_new = 3;
    change(r);
    CHECK_THROWS_WITH(generator.start(r), Catch::Contains(words));
    CHECK_THROWS_AS(generator.start(r), gyre::error);
  };
  using request = gyre::generation_request;
  refused([&](request& r) { r.prompt = empty; }, "prompt is empty");
  refused([&](request& r) { r.prompt = outside; }, "token 23 at position 1 of the prompt is outside the vocabulary of 23");
  refused([&](request& r) { r.prompt = negative; }, "token -1 at position 0");
  refused([&](request& r) { r.prompt = wide; }, "a prompt of 25 tokens exceeds the context of 24");
  refused([&](request& r) { r.exit = gyre::exits::any(); }, "steps is 0");
  refused([&](request& r) { r.exit = 0; }, "steps is 0");
  refused([&](request& r) { r.exit = -3; }, "steps is -3");
  refused([&](request& r) { r.exit = gyre::exits::latent_diff{.cap = 0}; }, "cap is 0");
  refused([&](request& r) { r.exit = gyre::exits::latent_diff{.below = -0.5f}; }, "below is -0.5");
  refused([&](request& r) { r.exit = gyre::exits::latent_diff{.least = 0, .stride = 2}; }, "least is 0 and stride is 2");
  refused([&](request& r) { r.choose.temperature = -1; }, "temperature is -1");
  refused([&](request& r) { r.max_new = -2; }, "max_new is -2");
  refused([&](request& r) { r.stop_tokens = {7, 40}; }, "stop token 40 is outside the vocabulary of 23");
  refused([&](request& r) { r.stop_strings = {"END"}; }, "need `bytes`");
  refused([&](request& r) { r.key = std::uint64_t{1} << 32; }, "key 4294967296");
  refused([&](request& r) { r.state_scale = -1; }, "state_scale is -1");
  refused(
      [&](request& r) {
        r.bytes = [](gyre::token) { return std::string_view("x"); };
        r.stop_strings = {"END", ""};
      },
      "stop string 1 is empty");
  CHECK_THROWS_WITH(gyre::generator(net, {.prompt_rows = 0}), Catch::Contains("prompt_rows is 0"));
  CHECK_FALSE(generator.advance());
  CHECK_THROWS_WITH(generator.cancel(9), Catch::Contains("no request 9"));
}
