// The programs that show the parity harness, run.
#include "../support/words.hpp"
#include "process.hpp"

namespace gyre_test {
namespace {

outcome started(const std::string& program, std::vector<std::string> arguments) {
  return process(GYRE_PROGRAMS "/" + program, std::move(arguments)).wait();
}

}  // namespace

TEST_CASE("own_kernel passes the right kernel and shows what is wrong with the other", "[programs]") {
  const outcome right = started("own_kernel", {"--kernel", "right"});
  INFO(right.out << right.err);
  CHECK(right.status == 0);
  CHECK_THAT(right.out, Catch::Contains("40 trials") && !Catch::Contains("FAILED"));

  const outcome wrong = started("own_kernel", {"--kernel", "wrong"});
  INFO(wrong.out << wrong.err);
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.out, Catch::Contains("right beyond tolerance") && Catch::Contains("rows=1,cols=1,"));
  // The line that repeats it does.
  const std::string mark = "repeat: ./run own_kernel ";
  const std::size_t begin = wrong.out.find(mark);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = wrong.out.find('\n', begin);
  const outcome again = started("own_kernel", words_of(wrong.out.substr(begin + mark.size(), end - begin - mark.size())));
  INFO(again.out << again.err);
  CHECK(again.status == 1);
  CHECK_THAT(again.out, Catch::Contains("right beyond tolerance") && Catch::Contains("rows=1,cols=1,"));
}

TEST_CASE("parity prints its table, one operation, one trial, and what it does not know", "[programs]") {
  const outcome one = started("parity", {"--operation", "rms_norm", "--trials", "5"});
  INFO(one.out << one.err);
  CHECK(one.status == 0);
  CHECK_THAT(one.out, Catch::Contains("| rms_norm | float | 5 |") && !Catch::Contains("| copy |"));
  const outcome trial = started("parity", {"--operation", "rms_norm", "--type", "double", "--sizes", "rows=3,cols=7"});
  INFO(trial.out << trial.err);
  CHECK(trial.status == 0);
  CHECK_THAT(trial.out, Catch::Contains("rms_norm: passed, 24 elements"));
  const scratch_folder folder;
  const std::string file = (folder / "trial.safetensors").string();
  const std::vector<std::string> copy{"--operation", "copy", "--sizes", "rows=3,cols=7"};
  const auto with = [&](const char* option) {
    std::vector<std::string> words = copy;
    words.insert(words.end(), {option, file});
    return started("parity", words);
  };
  CHECK(with("--write").status == 0);
  const outcome read = with("--read");  // which holds left.y where output.y is wanted
  CHECK(read.status == 1);
  CHECK_THAT(read.err, Catch::Contains("there is no tensor 'output.y'") || Catch::Contains("there is no tensor \"output.y\""));
  CHECK(started("parity", {"--operation", "norm"}).status == 1);
  CHECK(started("parity", {"--help"}).status == 0);
}

}  // namespace gyre_test
