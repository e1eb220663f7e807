// What sessions train on: how text is divided, that its position can be saved, and that hops are fresh. [own_unit]
#include "../../examples/support/training_data.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "scratch_folder.hpp"

using examples::hops_data;
using examples::text_data;
using gyre::byte_tokens;
using gyre::token;
using gyre_test::scratch_folder;
using gyre_test::small_text;

namespace {

std::string text_of(std::span<const token> ids) {
  std::string text;
  for (const token t : ids) text += t == byte_tokens::bos ? std::string("|") : t < 0 ? "_" : std::string(byte_tokens::bytes(t));
  return text;
}
text_data::options small(gyre::index rows, gyre::index length, std::size_t hold_out) {
  text_data::options wanted;
  wanted.rows = rows, wanted.length = length, wanted.hold_out = hold_out;
  return wanted;
}
std::vector<token> copy(std::span<const token> from) { return {from.begin(), from.end()}; }

}  // namespace

TEST_CASE("the end of the text is held out, and nothing of it is trained on", "[examples]") {
  const scratch_folder folder;
  // Three documents; the last 30 bytes are all of the third, which has 20, and 10 of the second.
  const std::string first(200, 'a'), second = std::string(80, 'b') + std::string(10, 'B'), third(20, 'C');
  text_data data({folder.file("1", first), folder.file("2", second), folder.file("3", third)}, small(1, 9, 30));
  CHECK(data.train_bytes() == 280);
  CHECK(data.held_bytes() == 30);

  std::string trained;
  for (int i = 0; i < 28; ++i) {  // 282 tokens with two bos give 28 rows of 10: one epoch
    const gyre::batch b = data.next(1, 0, 1);
    trained += text_of(b.inputs.first(1)) + text_of(b.targets);
  }
  CHECK(trained.size() == 280);
  CHECK(std::count(trained.begin(), trained.end(), 'a') == 200);
  CHECK(std::count(trained.begin(), trained.end(), 'b') == 78);
  CHECK(std::count(trained.begin(), trained.end(), '|') == 2);

  // Held out: BBBBBBBBBB|CCCCCCCCCCCCCCCCCCCC in rows of 10; the third row has one token only, so it is dropped.
  std::string inputs, targets;
  for (const gyre::batch& b : data.held_out(8, 0)) inputs += text_of(b.inputs), targets += text_of(b.targets);
  CHECK(inputs == "BBBBBBBBB|CCCCCCCC" + std::string("CCCCCCCCC"));
  CHECK(targets == "BBBBBBBBBCCCCCCCCC" + std::string("CCCCCCCCC"));
}

TEST_CASE("a document's begin is no byte, so validation does not count it", "[examples]") {
  const scratch_folder folder;
  text_data data({folder.file("1", std::string(495, 'a')), folder.file("2", "CCCCC")}, small(1, 9, 20));
  // Fifteen a, bos, five C: two rows of 10, the bos in the second row among the targets.
  std::string targets;
  for (const gyre::batch& b : data.held_out(1, 0)) targets += text_of(b.targets);
  CHECK(targets == "aaaaaaaaaaaaa_CCCC");
}

TEST_CASE("the data go on where their position was taken", "[examples]") {
  const scratch_folder folder;
  const std::string path = folder.file("text", small_text(3000));
  text_data data({path}, small(4, 16, 100));
  for (int i = 0; i < 50; ++i) data.next(1, 0, 1);  // more than an epoch of 170 rows
  const gyre::json position = data.position();
  text_data other({path}, small(4, 16, 100));
  other.seek(gyre::json_field(position, "position"));
  for (int i = 0; i < 50; ++i) {
    const gyre::batch a = data.next(1, 0, 1);
    const std::vector<token> inputs = copy(a.inputs), targets = copy(a.targets);
    const gyre::batch b = other.next(1, 0, 1);
    CHECK(inputs == copy(b.inputs));
    CHECK(targets == copy(b.targets));
  }
}

TEST_CASE("a sample of the held-out text is spread over all of it", "[examples]") {
  const scratch_folder folder;
  std::string text(9000, 'a');
  for (char c = 'A'; c < 'K'; ++c) text += std::string(100, c);
  text_data data({folder.file("text", text)}, small(1, 24, 1000));
  std::set<token> seen;
  gyre::index tokens = 0;
  for (const gyre::batch& b : data.held_out(1, 240)) {
    tokens += static_cast<gyre::index>(b.targets.size());
    seen.insert(b.inputs.begin(), b.inputs.end());
  }
  CHECK(tokens == 240);
  CHECK(seen.size() == 10);
  text_data none({folder.file("text", text)}, small(1, 24, 0));
  CHECK(none.held_out(1, 240).empty());
}

TEST_CASE("texts that cannot be trained on are refused", "[examples]") {
  const scratch_folder folder;
  CHECK_THROWS_WITH(text_data({(folder / "absent").string()}, small(1, 8, 10)), Catch::Contains("absent"));
  CHECK_THROWS_WITH(text_data({folder.file("empty", "")}, small(1, 8, 10)),
                    Catch::Contains("is empty; there is no text to read"));
  CHECK_THROWS_WITH(text_data({folder.file("short", "short")}, small(1, 8, 10)), Catch::Contains("the text has 5 bytes"));
  CHECK_THROWS_WITH(text_data({}, small(1, 8, 10)), Catch::Contains("no text is given"));
  CHECK_THROWS_WITH(text_data({folder.file("text", small_text(900))}, small(0, 8, 10)), Catch::Contains("0 rows of 8 tokens"));
}

TEST_CASE("the identity of texts follows their bytes, not their names", "[examples]") {
  const scratch_folder folder;
  const auto identity = [&](const std::string& name, const std::string& bytes) {
    return text_data({folder.file(name, bytes)}, small(1, 8, 10)).identity();
  };
  std::string text = small_text(500);
  const gyre::json before = identity("a", text);
  CHECK(identity("b", text) == before);
  text[250] ^= 1;
  CHECK(identity("a", text) != before);
}

TEST_CASE("hops: fresh permutations each step and micro-batch, others for validation", "[examples]") {
  hops_data data(4, gyre::seed{3});
  std::set<std::vector<token>> seen;
  for (std::uint64_t step = 1; step <= 10; ++step)
    for (std::uint32_t part = 0; part < 2; ++part) {
      const gyre::batch b = data.next(step, part, 3);
      CHECK(b.rows == 4);
      for (std::size_t row = 0; row < 4; ++row) seen.insert(copy(b.inputs.subspan(16 * row, 16)));
    }
  CHECK(seen.size() == 80);
  const auto held = data.held_out(5, 64);
  REQUIRE(held.size() == 1);
  CHECK(held[0].rows == 8);
  for (std::size_t row = 0; row < 8; ++row) CHECK(seen.count(copy(held[0].inputs.subspan(16 * row, 16))) == 0);
  CHECK_FALSE(data.depth_should_help());
}
