// Command lines of the programs, the settings that they become, and what the programs print about numbers.
#include <catch2/catch.hpp>

#include "../../examples/support/arguments.hpp"
#include "../../examples/support/session_text.hpp"
#include "../../examples/support/settings.hpp"

using namespace examples;

namespace {

/// A command line, its program named "train".
struct command {
  std::vector<std::string> words{"train"};
  std::vector<const char*> pointers;
  arguments given() {
    pointers.clear();
    for (const std::string& word : words) pointers.push_back(word.c_str());
    return arguments(static_cast<int>(pointers.size()), pointers.data(), "purpose");
  }
};
arguments line(command& c, std::vector<std::string> words) {
  c.words.insert(c.words.end(), words.begin(), words.end());
  return c.given();
}
settings read(std::vector<std::string> words, settings start = {}) {
  command c;
  arguments given = line(c, std::move(words));
  const settings s = read_settings(given, start, {"huginn-prose", "huginn-hops", "failed-collapse"});
  given.ready();
  return s;
}

}  // namespace

TEST_CASE("options have values after a space or an equals sign", "[examples]") {
  command c;
  arguments given = line(c, {"--rows", "4", "--lr=1e-3", "--text", "a", "--text=b", "--curriculum", "--name", ""});
  CHECK(given.has("rows"));
  CHECK(given.has("lr"));
  CHECK_FALSE(given.has("row"));
  CHECK(given.number("rows", 1, "") == 4);
  CHECK(given.number("lr", 0.0, "") == 1e-3);
  CHECK(given.texts("text", "") == std::vector<std::string>{"a", "b"});
  CHECK(given.flag("curriculum", ""));
  CHECK(given.maybe_text("name", "") == std::optional<std::string>(""));
  CHECK(given.maybe_text("other", "") == std::nullopt);
  CHECK(given.ready());
}

TEST_CASE("an option given twice has the last value", "[examples]") {
  command c;
  arguments given = line(c, {"--rows", "4", "--curriculum", "--rows=5", "--curriculum", "--depth", "a", "--depth", "b"});
  CHECK(given.number("rows", 1, "") == 5);
  CHECK(given.flag("curriculum", ""));
  CHECK(given.choice("depth", {"a", "b"}, "a", "") == "b");
  CHECK(given.ready());
}

TEST_CASE("what is wrong on a command line is said in one sentence", "[examples]") {
  CHECK_THROWS_WITH(read({"--rows", "many"}), "train: --rows wants a number, not 'many'");
  CHECK_THROWS_WITH(read({"--rows", "4x"}), "train: --rows wants a number, not '4x'");
  CHECK_THROWS_WITH(read({"--warm-up", "-1"}), "train: --warm-up wants a number, not '-1'");
  CHECK_THROWS_WITH(read({"--low", "99999999999"}), "train: --low wants a number, not '99999999999'");
  CHECK_THROWS_WITH(read({"--rows"}), "train: --rows wants a value");
  CHECK_THROWS_WITH(read({"--wor", "4"}), "train: unknown option or value '--wor'; see train --help");
  CHECK_THROWS_WITH(read({"novel.txt"}), "train: unknown option or value 'novel.txt'; see train --help");
  CHECK_THROWS_WITH(read({"--optimizer", "sgd"}), "train: --optimizer is one of adamw, huginn_adam, muon, not 'sgd'");
  CHECK_THROWS_WITH(read({"--model", "gpt"}), "train: --model is one of huginn-prose, huginn-hops, failed-collapse, not 'gpt'");
}

TEST_CASE("settings survive a checkpoint, and the command line changes only what it names", "[examples]") {
  const settings s = read({"--text", "a", "--text", "b", "--lr", "0.125", "--curriculum", "--seed", "18446744073709551615",
                           "--depth", "uniform", "--high", "9"},
                          recipe("collapse"));
  CHECK(s.model == "failed-collapse");
  CHECK(s.texts == std::vector<std::string>{"a", "b"});
  const gyre::json kept = gyre::parse_json(gyre::write_json(to_json(s)), "kept");
  const settings back = settings_of(gyre::json_field(kept, "kept"));
  CHECK(to_json(back) == kept);
  CHECK(back.seed == 18446744073709551615u);
  CHECK(back.lr == 0.125);
  CHECK(back.curriculum);
  const settings changed = read({"--rows", "3"}, back);
  CHECK(changed.rows == 3);
  CHECK(changed.texts == s.texts);
  CHECK(changed.curriculum);
}

TEST_CASE("errors of the system become one line with the program's name", "[examples]") {
  const char* words[] = {"./build/train"};
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  const auto status_of = [&](auto&& body) { return guarded(1, words, body); };
  const int fine = status_of([] { return 3; }), memory = status_of([]() -> int { throw std::bad_alloc(); }),
            system = status_of([]() -> int { throw std::system_error(std::make_error_code(std::errc::no_such_process)); });
  std::cerr.rdbuf(before);
  CHECK(fine == 3);
  CHECK(memory == 1);
  CHECK(system == 1);
  CHECK(said.str() ==
        "error: not enough memory for train; use fewer rows, a shorter length, fewer steps\n"
        "error: train: No such process\n");
}

TEST_CASE("progress is one line", "[examples]") {
  session_progress p{.step = 120, .total = 1500, .loss = 2.4314, .depth = 9, .tokens_per_second = 12344.6};
  CHECK(progress_text(p) == "step 120/1500  loss 2.431  r 9  12,345 tokens/s");
  p.seconds_left = 187.2;
  CHECK(progress_text(p) == "step 120/1500  loss 2.431  r 9  12,345 tokens/s  left 3:07");
  CHECK(clock_text(3753) == "1:02:33");
  CHECK(clock_text(59.6) == "1:00");
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(1000) == "1,000");
  CHECK(thousands(1234567) == "1,234,567");
}

TEST_CASE("a validation is a table of two lines", "[examples]") {
  const std::vector<gyre::evaluation> results{{1, 1.7793, 100}, {16, 1.0, 100}};
  CHECK(validation_table(results, "byte") ==
        "  r                        1      16\n"
        "  bits per byte        2.567   1.443");
}
