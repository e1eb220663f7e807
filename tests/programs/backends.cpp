// The programs' --backend: the kernels of `cuda` on the interpreter train as the cpu does, and each goes on with the other's
// checkpoint.
#include <cmath>

#include <gyre/io/folder_transaction.hpp>

#include "../../examples/support/training_log.hpp"
#include "process.hpp"

using namespace gyre_test;

namespace {

const std::string programs = GYRE_PROGRAMS;

outcome train(std::vector<std::string> arguments) { return run(programs + "/train", std::move(arguments)); }
std::vector<examples::step_record> steps(const std::filesystem::path& run) {
  return examples::training_log(run / "log.jsonl", std::uint64_t{1} << 40).records().steps;
}

}  // namespace

TEST_CASE("a training changes from the kernels of cuda to the cpu and back", "[programs]") {
  const scratch_folder folder;
  const std::string text = folder.file("text", small_text(8000)), turns = folder / "turns", cpu = folder / "cpu";
  const std::vector<std::string> rules{"--text",       text,       "--rows",        "1", "--length",      "4",
                                       "--mean-steps", "2",        "--watch-steps", "0", "--last-tokens", "4",
                                       "--schedule",   "constant", "--save-steps",  "1", "--threads",     "1"};
  const auto go = [&](const std::string& out, const char* backend, const char* last, std::vector<std::string> more) {
    more.insert(more.end(), {"--out", out, "--backend", backend, "--steps", last});
    const outcome done = train(more);
    INFO(done.err);
    REQUIRE(done.status == 0);
  };
  go(cpu, "cpu", "3", rules);
  go(turns, "simulated_cuda", "1", rules);
  go(turns, "cpu", "2", {"--resume"});
  go(turns, "simulated_cuda", "3", {"--resume"});
  const auto expected = steps(cpu), got = steps(turns);
  REQUIRE(expected.size() == 3);
  REQUIRE(got.size() == 3);
  // Two backends differ by rounding; three steps later by no more than a few of its size.
  for (std::size_t n = 0; n < 3; ++n)
    CHECK(std::fabs(got[n].report.loss - expected[n].report.loss) <= 1e-5 * expected[n].report.loss);

  const auto score = [&](const char* backend) {
    const outcome done = run(programs + "/generate", {"--checkpoint", turns, "--backend", backend, "--prompt", "the", "--score",
                                                      " sea", "--steps", "2"});
    INFO(done.err);
    REQUIRE(done.status == 0);
    double nats = 0;
    REQUIRE(std::sscanf(done.out.c_str(), "log-likelihood %lf", &nats) == 1);
    return nats;
  };
  const double here = score("cpu");
  CHECK(std::fabs(score("simulated_cuda") - here) <= 1e-5 * std::fabs(here));
}

TEST_CASE("backends that a program lacks are refused with what to do", "[programs]") {
  const scratch_folder folder;
  const std::string text = folder.file("text", small_text(8000));
  CHECK_THAT(train({"--text", text, "--steps", "1", "--backend", "gpu"}).err, Catch::Contains("cpu, cuda, simulated_cuda"));
  CHECK_THAT(train({"--text", text, "--steps", "1", "--backend", "simulated_cuda", "--optimizer", "muon"}).err,
             Catch::Contains("--optimizer adamw"));
#ifndef GYRE_PROGRAMS_WITH_CUDA
  CHECK_THAT(train({"--text", text, "--steps", "1", "--backend", "cuda"}).err, Catch::Contains("-DGYRE_CUDA=ON"));
#endif
}
